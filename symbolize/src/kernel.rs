//! Names of kernel code.

mod current;
mod kallsyms;

pub use current::CurrentKernel;
pub use kallsyms::{KernelSymbol, KernelSymbols};
