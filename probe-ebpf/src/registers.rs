//! The registers of a thread, as a walk of its stack needs them.

use crate::rule::base;

/// The registers that a walk needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Registers {
    /// rip.
    pub ip: u64,
    /// rsp.
    pub sp: u64,
    /// rbp.
    pub bp: u64,
}

/// The other registers of the interrupted function: by [`base`] minus
/// [`base::R10`].
pub const SCRATCH_REGISTERS: usize = 14;

/// Where a register is among them.
pub const fn scratch(base: u8) -> usize {
    (base - base::R10) as usize
}
