//! Rules of AArch64, where a call leaves its return address in x30. A function that calls
//! others saves it, most often beside the frame pointer x29.

use super::Extended;

/// Bits 18..20 of a rule that is a word: what was saved.
pub mod saved {
    /// Nothing: the return address is in x30, and x29 is the caller's.
    pub const NOTHING: u32 = 0;
    /// x29 at `cfa - 8 * slot`, and x30 in the word above.
    pub const PAIR: u32 = 1;
    /// x30 at `cfa - 8 * slot`; x29 is the caller's.
    pub const LINK: u32 = 2;
}

/// What a CFA may be counted from: [`Extended::base`]. From [`X30`](base::X30) on, registers are
/// in the order of [`Walk::scratch`](crate::walk::Walk::scratch), and known in an interrupted
/// function only.
#[allow(missing_docs, reason = "each stands for the register of its name")]
pub mod base {
    pub const SP: u8 = 0;
    pub const X29: u8 = 1;
    pub const X30: u8 = 2;
    pub const X8: u8 = 3;
    pub const X9: u8 = 4;
    pub const X10: u8 = 5;
    pub const X11: u8 = 6;
    pub const X12: u8 = 7;
    pub const X13: u8 = 8;
    pub const X14: u8 = 9;
    pub const X15: u8 = 10;
    pub const X16: u8 = 11;
    pub const X17: u8 = 12;
    pub const X19: u8 = 13;
    pub const X20: u8 = 14;
    pub const X28: u8 = 15;
}

const _: () = assert!(super::base::GOROUTINE > base::X28);

/// The numbers of the registers in [`Walk::scratch`](crate::walk::Walk::scratch), in its order.
pub const SCRATCH: [u8; 14] = [30, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 28];

/// The parts of an [`Extended`] rule: `cfa = base + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The register that the CFA is counted from: one of [`base`].
    pub base: u8,
    /// What is added to the base.
    pub offset: i32,
    /// The offset from the CFA at which x29 was saved. None if it was not saved.
    pub x29: Option<i32>,
    /// The offset from the CFA at which x30 was saved. None if it was not saved.
    pub x30: Option<i32>,
}

impl Frame {
    /// Returns the extended rule with these parts.
    pub const fn pack(self) -> Extended {
        let (caller_rbp, rbp_offset) = match self.x29 {
            Some(at) => (1, at),
            None => (0, 0),
        };
        let (caller_rbx, addend) = match self.x30 {
            Some(at) => (1, at),
            None => (0, 0),
        };
        Extended {
            base: self.base,
            deref: 0,
            caller_rbp,
            caller_rbx,
            offset: self.offset,
            addend,
            rbp_offset,
        }
    }

    /// Returns the parts of an extended rule.
    #[inline(always)]
    pub const fn unpack(rule: &Extended) -> Frame {
        Frame {
            base: rule.base,
            offset: rule.offset,
            x29: if rule.caller_rbp != 0 {
                Some(rule.rbp_offset)
            } else {
                None
            },
            x30: if rule.caller_rbx != 0 {
                Some(rule.addend)
            } else {
                None
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was() {
        for (x29, x30) in [
            (None, None),
            (Some(-16), None),
            (None, Some(-8)),
            (Some(-32), Some(8)),
        ] {
            let frame = Frame {
                base: base::X17,
                offset: -48,
                x29,
                x30,
            };
            assert_eq!(Frame::unpack(&frame.pack()), frame);
        }
    }
}
