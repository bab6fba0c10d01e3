//! An *unwind rule*: how to get from the registers in a function to those in
//! its caller. It is packed into one word, and a row of a table names it in two bytes.
//!
//! A rule that does not fit into a word is an [`Extended`] rule, and the word holds its number.
//! Words have the same layout for all machines, but what their parts mean depends on the machine.
//! This file has the meaning for x86-64, where the return address is always at `cfa - 8`;
//! [`aarch64`] has that for AArch64.

pub mod aarch64;

/// A packed rule: bits 0..2 the kind, 2..18 the offset in words (or what the
/// kind says), 18..20 what was saved, 20..32 its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(pub u32);

/// The kind of a rule, bits 0..2.
pub mod kind {
    /// `cfa = stack pointer + 8 * offset`
    pub const SP: u32 = 0;
    /// `cfa = frame pointer + 8 * offset`
    pub const BP: u32 = 1;
    /// The offset is one of [`super::special`].
    pub const SPECIAL: u32 = 2;
    /// The offset is the number of an [`super::Extended`] rule.
    pub const EXTENDED: u32 = 3;
}

/// Offsets of rules of the kind `SPECIAL`.
pub mod special {
    /// The thread's first function, which has no caller.
    pub const END: u32 = 0;
    /// The unwind information says something that is not supported.
    pub const UNSUPPORTED: u32 = 1;
    /// The code to which a signal handler returns: all registers are on the stack, where the
    /// kernel put them.
    pub const SIGNAL: u32 = 2;
    /// There is no unwind information here, in a file that has some: try the frame
    /// pointer.
    pub const FRAME_POINTER: u32 = 3;
    /// There is no table: try the frame pointer, in which 0 is no hint that a stack begins here.
    pub const NO_TABLE: u32 = 4;
    /// The frame pointer leads to the caller, which has another stack:
    /// `(ip, sp, bp) = (*(bp + 8), bp + 16, *bp)`
    pub const STACK_SWITCH: u32 = 5;
    /// AArch64: the return address is in x30 and the frame pointer is the caller's, but how
    /// far the stack pointer went down is not known.
    pub const LINK: u32 = 6;
    /// This plus a number below 16: a PLT slot that has pushed a word from its byte with
    /// that number on: `cfa = rsp + 8 + (rip & 15 >= number) * 8`
    pub const PLT: u32 = 16;
}

/// Where the caller's rbp is: bits 18..20 on x86-64.
pub mod caller_rbp {
    /// In rbp still.
    pub const SAME: u32 = 0;
    /// At `cfa - 8 * slot`.
    pub const AT_CFA: u32 = 1;
}

impl Rule {
    /// The largest offset of a rule that is one word.
    pub const OFFSET_MAX: u32 = 0xffff;
    /// The largest distance below the CFA of what was saved, in words.
    pub const SLOT_MAX: u32 = 0xfff;

    /// Makes a rule that fits into one word.
    #[inline(always)]
    pub const fn new(kind: u32, offset: u32, saved: u32, slot: u32) -> Rule {
        Rule(kind | (offset & 0xffff) << 2 | saved << 18 | (slot & 0xfff) << 20)
    }

    /// Makes a rule of kind [`kind::SPECIAL`].
    #[inline(always)]
    pub const fn special(which: u32) -> Rule {
        Rule::new(kind::SPECIAL, which, 0, 0)
    }

    /// Returns the [`kind`].
    #[inline(always)]
    pub const fn kind(self) -> u32 {
        self.0 & 3
    }

    /// Returns the offset in words; of a special rule which it is, of an extended one its number.
    #[inline(always)]
    pub const fn offset(self) -> u32 {
        self.0 >> 2 & 0xffff
    }

    /// Returns what was saved: a [`caller_rbp`], or an [`aarch64::saved`].
    #[inline(always)]
    pub const fn saved(self) -> u32 {
        self.0 >> 18 & 3
    }

    /// Returns where it was saved, in words below the CFA.
    #[inline(always)]
    pub const fn slot(self) -> u32 {
        self.0 >> 20
    }
}

/// A rule that needs more than a word:
/// `cfa = (deref ? *(base + offset) : base + offset) + addend`,
/// with rbp at any place relative to the CFA or to rbp. On AArch64 the fields mean what
/// [`aarch64::Frame`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Extended {
    /// What the CFA is counted from: one of [`base`].
    pub base: u8,
    /// Whether memory is read for it: one of [`deref`].
    pub deref: u8,
    /// Where the caller's rbp is: one of [`extended_rbp`].
    pub caller_rbp: u8,
    /// Where the caller's rbx is: one of [`extended_rbx`].
    pub caller_rbx: u8,
    /// What is added to the base.
    pub offset: i32,
    /// What is added after that, and after memory was read there if `deref` says so.
    pub addend: i32,
    /// Where the caller's rbp is, counted as `caller_rbp` says.
    pub rbp_offset: i32,
}

const _: () = {
    assert!(size_of::<Extended>() == 16);
    assert!(core::mem::offset_of!(Extended, offset) == 4);
    assert!(core::mem::offset_of!(Extended, addend) == 8);
    assert!(core::mem::offset_of!(Extended, rbp_offset) == 12);
};

/// What a CFA may be counted from. Registers other than rsp and rbp are known in
/// the interrupted function only; rbx is also known in its callers, as long as all
/// rules on the way have said where it is.
#[allow(missing_docs, reason = "each stands for the register of its name")]
pub mod base {
    pub const RSP: u8 = 0;
    pub const RBP: u8 = 1;
    pub const R10: u8 = 2;
    pub const RAX: u8 = 3;
    pub const RCX: u8 = 4;
    pub const RSI: u8 = 5;
    pub const RDI: u8 = 6;
    pub const R8: u8 = 7;
    pub const R9: u8 = 8;
    pub const R11: u8 = 9;
    pub const R13: u8 = 10;
    pub const RDX: u8 = 11;
    pub const R12: u8 = 12;
    pub const R14: u8 = 13;
    pub const R15: u8 = 14;
    pub const RBX: u8 = 15;
    /// Go calls C: at `rsp + offset` is the goroutine, and in the word below it how far the
    /// stack pointer was from the end of the goroutine's stack. Or the goroutine is 0 and the
    /// word below it the stack pointer itself. `cfa = stack pointer + addend`
    pub const CGO_CALL: u8 = 16;
    /// Go's runtime works for a goroutine: `offset` is that of `curg` in
    /// `runtime.m`, `rbp_offset` that of `sched.bp` in `runtime.g`. With `deref`
    /// the goroutine's return address is on its stack. On AArch64 as well.
    pub const GOROUTINE: u8 = 17;
}

/// Values of [`Extended::deref`].
pub mod deref {
    /// The CFA is counted from `base + offset` itself.
    pub const NO: u8 = 0;
    /// The CFA is counted from the word in memory at `base + offset`.
    pub const YES: u8 = 1;
    /// The base holds the return address, and is nothing to count from:
    /// `sp = rsp + offset`.
    pub const RETURN: u8 = 2;
}

/// Values of [`Extended::caller_rbp`].
pub mod extended_rbp {
    /// The caller's rbp is in rbp still.
    pub const SAME: u8 = 0;
    /// At `cfa + rbp_offset`.
    pub const AT_CFA: u8 = 1;
    /// At `rbp + rbp_offset`.
    pub const AT_RBP: u8 = 2;
}

/// Values of [`Extended::caller_rbx`]; from 2 on, rbx is at `cfa - 8 * value`.
pub mod extended_rbx {
    /// The rule does not say where the caller's rbx is.
    pub const LOST: u8 = 0;
    /// The caller's rbx is in rbx still.
    pub const SAME: u8 = 1;
    /// The lowest value that means a place below the CFA.
    pub const AT_CFA: u8 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_keeps_to_its_bits() {
        let rule = Rule::new(
            kind::BP,
            Rule::OFFSET_MAX,
            caller_rbp::AT_CFA,
            Rule::SLOT_MAX,
        );
        assert_eq!(rule.kind(), kind::BP);
        assert_eq!(rule.offset(), Rule::OFFSET_MAX);
        assert_eq!(rule.saved(), caller_rbp::AT_CFA);
        assert_eq!(rule.slot(), Rule::SLOT_MAX);
    }
}
