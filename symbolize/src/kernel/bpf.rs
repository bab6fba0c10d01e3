//! BPF programs as the kernel has compiled them: where their functions are, and
//! which line of source text each instruction came from.
//!
//! The kernel tells it by system calls (BPF_OBJ_GET_INFO_BY_FD, Linux 5.0),
//! which this crate does not make: somebody implements [`BpfKernel`]. What comes
//! of it is as trustworthy as who loaded the program.

mod current;
mod program;

pub use current::CurrentBpf;
#[cfg(test)]
pub use current::tests;
pub use program::BpfProgram;

use std::fmt;

/// Whoever can ask the kernel for its BPF programs. What it cannot tell, for
/// lack of rights or because a program is gone, is `None`.
pub trait BpfKernel: Send + Sync + fmt::Debug {
    /// The lowest number above this one that a loaded program has.
    fn next_program(&self, after: u32) -> Option<u32>;

    /// Where the functions of a program are.
    fn extents(&self, program: u32) -> Option<Vec<BpfExtent>>;

    /// All that there is to know of a program.
    fn program(&self, program: u32) -> Option<BpfProgramInfo>;

    /// The code of each function of a program, as the kernel's compiler made it.
    fn code(&self, program: u32) -> Option<Vec<BpfCode>>;

    /// An object of BTF, by its number.
    fn types(&self, number: u32) -> Option<BpfTypes>;
}

/// The code of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfExtent {
    /// The kernel address of its first instruction.
    pub start: u64,
    /// Bytes of its code.
    pub len: u32,
}

/// The instructions of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfCode {
    /// The kernel address of the first one.
    pub start: u64,
    /// All of them, for the processor that the kernel runs on.
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
    /// Where the code of each line starts.
    pub line_addrs: Vec<u64>,
    /// The program's BTF: names and paths.
    pub btf: Vec<u8>,
}

/// An object of BTF that the kernel holds.
#[derive(Debug, Clone, Default)]
pub struct BpfTypes {
    /// `vmlinux`, a kernel module's, or empty for a program's.
    pub name: Vec<u8>,
    /// Whether it is the kernel's own or a module's, not a program's.
    pub is_kernel: bool,
    /// The object, as the kernel gives it.
    pub bytes: Vec<u8>,
}

/// A place in a BPF program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfPlace {
    /// Empty if it is not known.
    pub function: Vec<u8>,
    /// Empty if it is not known; then `line` and `column` are 0.
    pub file: Vec<u8>,
    /// Counted from 1; 0 if it is not known.
    pub line: u32,
    /// Counted from 1; 0 if it is not known.
    pub column: u32,
}
