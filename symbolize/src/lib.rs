//! Names addresses for profilers: bytes in, names out.
//!
//! The input is a file that a process has mapped and an offset in it, or an address in the kernel;
//! the result is the function's name, or the [`Reason`] why there is none. Files, names and symbol
//! tables are not trusted: nothing in them makes this crate panic, hang, open another file, or use
//! more memory than its limits allow.
//!
//! ```no_run
//! use std::path::Path;
//! use symbolize::{FileOffset, FileSource, Symbolizer, demangle};
//!
//! let symbolizer = Symbolizer::new();
//! let source = FileSource {
//!     pid: Some(1),
//!     ..FileSource::new(Path::new("/usr/lib/systemd/systemd"))
//! };
//! let symbols = symbolizer.open(source)?;
//! let symbol = symbols.find(FileOffset(0x1234))?;
//! println!("{}", symbolize::sanitize(demangle(symbol.name).short().as_bytes()));
//! # Ok::<(), symbolize::Reason>(())
//! ```
//!
//! It is not a library for debuggers: it knows the members of types ([`types`]), but nothing about
//! variables. It has no global state, and no thread that it starts outlives the call.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod address;
mod bytes;
mod cache;
pub mod cache_directory;
pub mod code;
mod crc;
pub mod debug_file;
pub mod debuginfod;
pub mod demangle;
pub mod dwarf;
pub mod elf;
mod error;
pub mod file_id;
pub mod files;
pub mod foreign;
pub mod go;
mod hash;
mod inflate;
pub mod jit;
pub mod kernel;
pub mod lines;
pub mod nearest;
pub mod object;
pub mod opener;
mod origin;
pub mod packages;
pub mod parser;
pub mod python;
pub mod reason;
pub mod resolver;
pub mod revision;
pub mod sanitize;
pub mod sites;
pub mod source;
pub mod symbolizer;
pub mod table;
pub mod table_cache;
pub mod types;
pub mod unwind;
pub mod vdso;
mod wire;
mod writers;
pub mod zip;

pub use address::{FileOffset, LinkAddr, Mapping, ProcessAddr, Segment, Segments};
pub use demangle::{Demangled, demangle};
pub use elf::{ElfSymbols, Symbol};
pub use error::OpenError;
pub use file_id::{BuildId, FileId};
pub use files::Files;
pub use go::{GoFrame, GoSymbols};
pub use jit::JitNames;
pub use kernel::{KernelSymbol, KernelSymbols};
pub use lines::Lines;
pub use opener::{FileIdentity, FileSource, RemoteFiles};
pub use origin::Origin;
pub use reason::Reason;
pub use resolver::Resolver;
pub use sanitize::sanitize;
pub use symbolizer::Symbolizer;
pub use table_cache::TableCache;
pub use vdso::Vdso;
pub use writers::Writers;
