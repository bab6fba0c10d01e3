//! Names of kernel code.

mod bpf;
mod btf;
mod current;
mod kallsyms;

pub use bpf::{BpfExtent, BpfKernel, BpfPlace, BpfProgram, BpfProgramInfo, BpfTypes, CurrentBpf};
pub use btf::{Btf, BtfType, kind as btf_kind};
pub use current::{CurrentKernel, KernelFrame};
pub use kallsyms::{KernelSymbol, KernelSymbols};
