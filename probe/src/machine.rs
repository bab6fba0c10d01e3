//! The machines that proftop samples on: which files have code for them, and how the kernel numbers
//! their registers. `probe_ebpf::machine` has the steps of their walks.
//!
//! All machines are defined on all machines, so that tests of one run on another.

mod aarch64;
mod x86_64;

pub use aarch64::AARCH64;
pub use x86_64::X86_64;

use probe_ebpf::registers::SCRATCH_REGISTERS;

/// The machine that this program is built for.
#[cfg(target_arch = "x86_64")]
pub const THIS: &Machine = &X86_64;

/// The machine that this program is built for.
#[cfg(target_arch = "aarch64")]
pub const THIS: &Machine = &AARCH64;

/// The properties of a machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// `e_machine` of files with its code.
    pub elf: u16,
    /// The numbers of registers in perf events.
    pub perf: PerfRegisters,
    /// Whether function calls can be counted and timed on it, and waits be followed.
    pub has_probes: bool,
    /// Whether there are BPF programs without `bpf_loop`, for kernels before Linux 6.1.
    pub walks_without_loop: bool,
}

/// The numbers of registers in the samples of perf events.
#[derive(Debug, Clone, Copy)]
pub struct PerfRegisters {
    /// Number of the instruction pointer.
    pub ip: u32,
    /// Number of the stack pointer.
    pub sp: u32,
    /// Number of the frame pointer.
    pub bp: u32,
    /// Numbers of the scratch registers, in the order in which the walk keeps them.
    pub scratch: [u32; SCRATCH_REGISTERS],
}
