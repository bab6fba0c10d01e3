//! Names of kernel code.

mod kallsyms;

pub use kallsyms::{KernelSymbol, KernelSymbols};
