//! The registers of a thread, as a walk of its stack needs them.

use crate::rule::{aarch64, base};

/// The registers that a walk needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Registers {
    /// The instruction: rip, or pc.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer: rbp, or x29.
    pub bp: u64,
}

/// Number of the other registers of the interrupted function. The index of one is its [`base`]
/// minus [`base::R10`], or its [`aarch64::base`](crate::rule::aarch64::base) minus
/// [`X30`](crate::rule::aarch64::base::X30).
pub const SCRATCH_REGISTERS: usize = 14;

/// Returns the index of a register among them.
pub const fn scratch(base: u8) -> usize {
    (base - base::R10) as usize
}

const _: () = assert!(aarch64::SCRATCH.len() == SCRATCH_REGISTERS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::aarch64::base;

    #[test]
    fn those_of_aarch64_are_in_the_order_of_the_bases() {
        let number = |base| aarch64::SCRATCH[scratch(base)];
        assert_eq!(number(base::X30), 30);
        assert_eq!(number(base::X8), 8);
        assert_eq!(number(base::X17), 17);
        assert_eq!(number(base::X20), 20);
        assert_eq!(number(base::X28), 28);
    }
}
