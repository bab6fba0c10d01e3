//! An unwind rule: computes the caller's registers from those in a function.
//!
//! The canonical frame address (CFA) is the stack pointer's value before the
//! call. On x86-64 every rule that is a [`Frame`](UnwindRule::Frame) means
//!
//! ```text
//! (rip, rsp, rbp) = (*(CFA - 8), CFA, rbp by RbpRule)
//! ```
//!
//! and on AArch64 every rule that is [`Linked`](UnwindRule::Linked)
//!
//! ```text
//! (pc, sp, x29) = (x30 by Saved, CFA, x29 by Saved)
//! ```

use std::fmt;

/// What to do at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnwindRule {
    /// Nothing is known about the code here: it is between functions, or has no unwind information.
    Hole,
    /// The function has no caller: `_start`, `clone`.
    EndOfStack,
    /// The kernel put the registers on the stack to call a signal handler, and the handler returns
    /// to this function: `__restore_rt`, with a `struct ucontext` at `rsp`; on AArch64
    /// `__kernel_rt_sigreturn`, with a `struct rt_sigframe` at `sp`. The interrupted address is not
    /// a return address.
    Signal,
    /// A stub of the procedure linkage table, which pushes a word at its
    /// `limit`th byte: `CFA = rsp + 8 + ((rip & 15) >= limit ? 8 : 0)`.
    ///
    /// `limit` is below 16. GNU ld writes 11, or 10 where stubs start with
    /// `endbr64`.
    Plt {
        /// The offset in the stub from which on the word is pushed.
        limit: u8,
    },
    /// An ordinary frame; the return address is at `CFA - 8`.
    Frame {
        /// How to compute the canonical frame address.
        cfa: Cfa,
        /// Where the caller's `rbp` is.
        rbp: RbpRule,
    },
    /// An ordinary frame, with the place of the caller's `rbx`: for files with a CFA that is
    /// relative to it.
    FrameWithRbx {
        /// How to compute the canonical frame address.
        cfa: Cfa,
        /// Where the caller's `rbp` is.
        rbp: RbpRule,
        /// Where the caller's `rbx` is.
        rbx: RbxRule,
    },
    /// The return address was taken from the stack, and is in a register: `(rip, rsp) = (register,
    /// rsp + offset)`. The C library's `vfork` does so, because the child would overwrite it.
    ReturnInRegister {
        /// The register that has the return address.
        register: Register,
        /// Distance from `rsp` to the caller's.
        offset: i32,
    },
    /// An ordinary frame of AArch64.
    Linked(Linked),
    /// AArch64: the return address is in `x30` and `x29` is the caller's; the size of the frame is
    /// unknown.
    LinkOnly,
    /// A function that runs on another stack than its caller. `rbp` leads to the caller's: `(rip,
    /// rsp, rbp) = (*(rbp + 8), rbp + 16, *rbp)`; on AArch64 `x29` does so.
    StackSwitch,
    /// `runtime.asmcgocall`, by which Go calls C on the thread's own stack. The word at `rsp +
    /// goroutine` is the calling goroutine, or 0 if there was no change of stacks. The word below
    /// is the distance from the end of its stack, or the stack pointer itself: `CFA = stack pointer
    /// + above`.
    CgoCall {
        /// Offset of the goroutine from `rsp`.
        goroutine: i32,
        /// Offset of the CFA from the saved stack pointer.
        above: i32,
        /// Where the caller's `rbp` is.
        rbp: RbpRule,
    },
    /// Go's runtime runs here on behalf of a goroutine, on the thread's own stack. The position of
    /// the goroutine is in `m.curg.sched`.
    Goroutine(Goroutine),
    /// There is a rule, but in a form that is not supported.
    Unsupported(Unsupported),
}

/// A frame of AArch64: a call leaves the return address in `x30`, and the called function may save
/// it. `CFA = base + offset`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Linked {
    /// The base register of the CFA, by its DWARF number, which is the same as its own; 31 is `sp`.
    pub base: u8,
    /// Added to it.
    pub offset: i32,
    /// Where the caller's `x29` is.
    pub x29: Saved,
    /// Where the return address is.
    pub x30: Saved,
}

impl Linked {
    /// A frame whose CFA is relative to `sp`.
    pub fn from_sp(offset: i32, x29: Saved, x30: Saved) -> Self {
        Linked {
            base: 31,
            offset,
            x29,
            x30,
        }
    }
}

/// Where a register of AArch64 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Saved {
    /// Not saved: still in the register.
    Not,
    /// `*(CFA + n)`
    AtCfa(i32),
}

/// Where a goroutine's registers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Goroutine {
    /// Offset of `curg` in `runtime.m`.
    pub current: i32,
    /// Offset of `sched.bp` in `runtime.g`.
    pub rbp: i32,
    /// Whether the return address is at the goroutine's stack pointer; otherwise it is saved
    /// separately.
    pub is_called: bool,
}

impl UnwindRule {
    /// An ordinary frame with `CFA = base + offset`, as nearly all have.
    pub fn frame(base: Register, offset: i32, rbp: RbpRule) -> UnwindRule {
        let cfa = Cfa {
            base,
            deref: false,
            offset,
            addend: 0,
        };
        UnwindRule::Frame { cfa, rbp }
    }
}

/// `CFA = (deref ? *(base + offset) : base + offset) + addend`
///
/// Without `deref`, `addend` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cfa {
    /// The base register.
    pub base: Register,
    /// Functions that align their stack keep the CFA in memory: GCC as `*(rbp - 8)`, OpenSSL's
    /// assembler code as `*(rsp + N) + 8`.
    pub deref: bool,
    /// Added to `base`.
    pub offset: i32,
    /// Added to what was read from memory.
    pub addend: i32,
}

/// Where the caller's `rbp` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RbpRule {
    /// Still in `rbp`.
    Same,
    /// `*(CFA + n)`
    AtCfa(i32),
    /// `*(rbp + n)`
    AtRbp(i32),
}

/// Where the caller's `rbx` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RbxRule {
    /// Still in `rbx`.
    Same,
    /// `*(CFA + n)`
    AtCfa(i32),
    /// At no known place.
    Lost,
}

/// The registers of x86-64 by their DWARF numbers (psABI, figure 3.36).
///
/// Registers that a function need not preserve can be the base of a CFA only in the innermost
/// frame, where their values are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Register {
    /// `rax`
    Rax = 0,
    /// `rdx`
    Rdx = 1,
    /// `rcx`
    Rcx = 2,
    /// `rbx`
    Rbx = 3,
    /// `rsi`
    Rsi = 4,
    /// `rdi`
    Rdi = 5,
    /// `rbp`
    Rbp = 6,
    /// `rsp`
    Rsp = 7,
    /// `r8`
    R8 = 8,
    /// `r9`
    R9 = 9,
    /// `r10`
    R10 = 10,
    /// `r11`
    R11 = 11,
    /// `r12`
    R12 = 12,
    /// `r13`
    R13 = 13,
    /// `r14`
    R14 = 14,
    /// `r15`
    R15 = 15,
}

impl Register {
    /// All registers, each at the index that is its DWARF number.
    pub const ALL: [Register; 16] = [
        Register::Rax,
        Register::Rdx,
        Register::Rcx,
        Register::Rbx,
        Register::Rsi,
        Register::Rdi,
        Register::Rbp,
        Register::Rsp,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];

    /// Returns the register with a DWARF number; `None` if it is not a general one.
    pub fn from_dwarf(number: u16) -> Option<Register> {
        Register::ALL.get(usize::from(number)).copied()
    }
}

/// Why a rule is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unsupported {
    /// The CFA is an expression of an unknown form.
    CfaExpression,
    /// The CFA is relative to a register that is not a general one.
    CfaRegister,
    /// The place of the frame pointer is an expression of an unknown form.
    RbpExpression,
    /// The frame pointer is in another register, or is computed.
    RbpRule,
    /// The return address is not at `CFA - 8`; on AArch64, in another register or computed.
    ReturnAddress,
    /// A signal frame with another layout than the kernel's.
    SignalFrame,
    /// An offset beyond 2 GiB.
    Offset,
    /// The file has more different rules than fit a [`RuleId`](super::RuleId).
    TooManyRules,
}

impl Unsupported {
    /// All causes, as statistics list them.
    pub const ALL: [Unsupported; 8] = [
        Unsupported::CfaExpression,
        Unsupported::CfaRegister,
        Unsupported::RbpExpression,
        Unsupported::RbpRule,
        Unsupported::ReturnAddress,
        Unsupported::SignalFrame,
        Unsupported::Offset,
        Unsupported::TooManyRules,
    ];
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsupported::CfaExpression => "CFA by an unknown expression",
            Unsupported::CfaRegister => "CFA relative to a special register",
            Unsupported::RbpExpression => "frame pointer at an unknown expression",
            Unsupported::RbpRule => "frame pointer elsewhere than in memory",
            Unsupported::ReturnAddress => "return address not where calls leave it",
            Unsupported::SignalFrame => "unknown signal frame",
            Unsupported::Offset => "offset too large",
            Unsupported::TooManyRules => "too many rules in the file",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_numbered_as_listed() {
        for (number, register) in (0..).zip(Register::ALL) {
            assert_eq!(register as u16, number);
            assert_eq!(Register::from_dwarf(number), Some(register));
        }
        assert_eq!(Register::from_dwarf(16), None);
    }
}
