//! Names of kernel code.

mod bpf;
mod btf;
mod core;
mod current;
mod kallsyms;
mod tracepoints;

pub use bpf::{
    BpfCode, BpfExtent, BpfKernel, BpfPlace, BpfProgram, BpfProgramInfo, BpfTypes, CurrentBpf,
};
pub use btf::{Btf, BtfType, kind as btf_kind};
pub use core::KernelCore;
#[doc(hidden)]
pub use core::made_up as made_up_core;
pub use current::{CurrentKernel, KernelFrame};
pub use kallsyms::{KernelSymbol, KernelSymbols};
pub use tracepoints::{Parameter, Tracepoint, Tracepoints};
