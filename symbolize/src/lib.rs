//! Bytes in, names out.

#![forbid(unsafe_code)]

pub mod address;
mod bytes;
pub mod demangle;
pub mod elf;
mod error;
pub mod file_id;
pub mod kernel;
pub mod object;
pub mod opener;
pub mod reason;
pub mod sanitize;
pub mod source;
pub mod symbolizer;
pub mod vdso;

pub use address::{FileOffset, LinkAddr, Mapping, ProcessAddr, Segment, Segments};
pub use demangle::{Demangled, demangle};
pub use elf::{ElfSymbols, Symbol};
pub use error::OpenError;
pub use file_id::{BuildId, FileId};
pub use kernel::{KernelSymbol, KernelSymbols};
pub use opener::{FileSource, RemoteFiles};
pub use reason::Reason;
pub use sanitize::sanitize;
pub use symbolizer::Symbolizer;
pub use vdso::Vdso;
