//! BPF programs as compiled by the kernel: where their functions are, and which source line each
//! instruction is from.
//!
//! The kernel provides this by system calls (BPF_OBJ_GET_INFO_BY_FD, Linux 5.0), which this crate
//! does not make: the caller implements [`BpfKernel`]. The contents are as trustworthy as the user
//! who loaded the program.

mod current;
mod program;

pub use current::CurrentBpf;
#[cfg(test)]
pub use current::tests;
pub use program::BpfProgram;

use std::fmt;

/// Queries the kernel for its BPF programs. What it does not provide, for lack of rights or because
/// a program is gone, is `None`.
pub trait BpfKernel: Send + Sync + fmt::Debug {
    /// Returns the lowest id above `after` of a loaded program.
    fn next_program(&self, after: u32) -> Option<u32>;

    /// Returns where the functions of a program are.
    fn extents(&self, program: u32) -> Option<Vec<BpfExtent>>;

    /// Returns everything about a program.
    fn program(&self, program: u32) -> Option<BpfProgramInfo>;

    /// Returns the code of each function of a program, as the kernel's compiler made it.
    fn code(&self, program: u32) -> Option<Vec<BpfCode>>;

    /// Returns a BTF object by its id.
    fn types(&self, number: u32) -> Option<BpfTypes>;
}

/// The code range of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfExtent {
    /// The kernel address of its first instruction.
    pub start: u64,
    /// Length of its code in bytes.
    pub len: u32,
}

/// The instructions of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfCode {
    /// Kernel address of the first instruction.
    pub start: u64,
    /// The instructions, for the processor that the kernel runs on.
    pub bytes: Vec<u8>,
}

/// A program, as in `struct bpf_prog_info` (uapi/linux/bpf.h).
#[derive(Debug, Clone, Default)]
pub struct BpfProgramInfo {
    /// The code of each function.
    pub extents: Vec<BpfExtent>,
    /// A `struct bpf_func_info` for each function.
    pub functions: Vec<u8>,
    /// Size of one record of `functions`.
    pub function_bytes: u32,
    /// A `struct bpf_line_info` for each line.
    pub lines: Vec<u8>,
    /// Size of one record of `lines`.
    pub line_bytes: u32,
    /// The start address of each line's code.
    pub line_addrs: Vec<u64>,
    /// The program's BTF: names and paths.
    pub btf: Vec<u8>,
}

/// A BTF object that the kernel holds.
#[derive(Debug, Clone, Default)]
pub struct BpfTypes {
    /// `vmlinux`, the name of a kernel module, or empty for a program.
    pub name: Vec<u8>,
    /// Whether it belongs to the kernel or a module, and not to a program.
    pub is_kernel: bool,
    /// The object's bytes, as the kernel provides them.
    pub bytes: Vec<u8>,
}

/// A place in a BPF program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfPlace {
    /// Name of the function; empty if unknown.
    pub function: Vec<u8>,
    /// Path of the source file; empty if unknown; then `line` and `column` are 0.
    pub file: Vec<u8>,
    /// Line, counted from 1; 0 if unknown.
    pub line: u32,
    /// Column, counted from 1; 0 if unknown.
    pub column: u32,
}
