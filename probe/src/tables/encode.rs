//! Packs an unwind rule into one word if it fits, else into an extended rule.

mod aarch64;

use probe_ebpf::rule::{
    Extended, Rule, base, caller_rbp, deref, extended_rbp, extended_rbx, kind, special,
};
use symbolize::unwind::{Cfa, Goroutine, RbpRule, RbxRule, Register, UnwindRule};

/// Size of a stack slot in bytes.
const SLOT: i32 = 8;

/// A packed rule without its number in the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packed {
    /// A rule that fits into one word.
    Word(Rule),
    /// A rule that does not fit into one word.
    Extended(Extended),
}

impl Packed {
    /// The rule where a file has no information: walk by frame pointer.
    pub const HOLE: Packed = Packed::Word(Rule::special(special::FRAME_POINTER));
    /// The rule where a file has information that cannot be expressed.
    pub const UNSUPPORTED: Packed = Packed::Word(Rule::special(special::UNSUPPORTED));
}

/// Packs a rule; `UNSUPPORTED` if neither form can express it.
pub fn encode(rule: &UnwindRule) -> Packed {
    let special = |which| Packed::Word(Rule::special(which));
    match *rule {
        UnwindRule::Hole => Packed::HOLE,
        UnwindRule::EndOfStack => special(special::END),
        UnwindRule::Signal => special(special::SIGNAL),
        UnwindRule::StackSwitch => special(special::STACK_SWITCH),
        UnwindRule::Plt { limit } if limit < 16 => special(special::PLT + u32::from(limit)),
        UnwindRule::Plt { .. } | UnwindRule::Unsupported(_) => Packed::UNSUPPORTED,
        UnwindRule::CgoCall {
            goroutine,
            above,
            rbp,
        } => Packed::Extended(cgo_call(goroutine, above, rbp)),
        UnwindRule::ReturnInRegister { register, offset } => match base_number(register) {
            // These two are never available like scratch registers.
            base::RSP | base::RBP => Packed::UNSUPPORTED,
            base => Packed::Extended(Extended {
                base,
                deref: deref::RETURN,
                offset,
                ..Extended::default()
            }),
        },
        UnwindRule::Goroutine(goroutine) => Packed::Extended(of_goroutine(&goroutine)),
        UnwindRule::FrameWithRbx { cfa, rbp, rbx } => {
            let rule = extended(&cfa, rbp).map(|rule| Extended {
                caller_rbx: rbx_number(rbx),
                ..rule
            });
            rule.map_or(Packed::UNSUPPORTED, Packed::Extended)
        }
        UnwindRule::LinkOnly => special(special::LINK),
        UnwindRule::Linked(frame) => aarch64::encode(&frame),
        UnwindRule::Frame { cfa, rbp } => match word(&cfa, rbp) {
            Some(word) => Packed::Word(word),
            None => extended(&cfa, rbp).map_or(Packed::UNSUPPORTED, Packed::Extended),
        },
    }
}

/// Packs `cfa = rsp or rbp + 8n`, with rbp unchanged or at `cfa - 8n`; `None` for other rules.
fn word(cfa: &Cfa, rbp: RbpRule) -> Option<Rule> {
    let kind = match cfa.base {
        Register::Rsp => kind::SP,
        Register::Rbp => kind::BP,
        _ => return None,
    };
    if cfa.deref {
        return None;
    }
    let offset = slots(cfa.offset.checked_add(cfa.addend)?, Rule::OFFSET_MAX)?;
    let (caller_rbp, slot) = match rbp {
        RbpRule::Same => (caller_rbp::SAME, 0),
        RbpRule::AtCfa(at) => (
            caller_rbp::AT_CFA,
            slots(at.checked_neg()?, Rule::SLOT_MAX)?,
        ),
        RbpRule::AtRbp(_) => return None,
    };
    Some(Rule::new(kind, offset, caller_rbp, slot))
}

fn slots(bytes: i32, max: u32) -> Option<u32> {
    if bytes % SLOT != 0 {
        return None;
    }
    u32::try_from(bytes / SLOT).ok().filter(|n| *n <= max)
}

fn extended(cfa: &Cfa, rbp: RbpRule) -> Option<Extended> {
    // Without a load in between, the two are added: this gives fewer different rules.
    let (offset, addend) = if cfa.deref {
        (cfa.offset, cfa.addend)
    } else {
        (cfa.offset.checked_add(cfa.addend)?, 0)
    };
    let (caller_rbp, rbp_offset) = match rbp {
        RbpRule::Same => (extended_rbp::SAME, 0),
        RbpRule::AtCfa(at) => (extended_rbp::AT_CFA, at),
        RbpRule::AtRbp(at) => (extended_rbp::AT_RBP, at),
    };
    Some(Extended {
        base: base_number(cfa.base),
        deref: u8::from(cfa.deref),
        caller_rbp,
        caller_rbx: extended_rbx::LOST,
        offset,
        addend,
        rbp_offset,
    })
}

/// Returns the number of a base register; all are known in an interrupted function.
fn base_number(register: Register) -> u8 {
    match register {
        Register::Rsp => base::RSP,
        Register::Rbp => base::RBP,
        Register::R10 => base::R10,
        Register::Rax => base::RAX,
        Register::Rcx => base::RCX,
        Register::Rsi => base::RSI,
        Register::Rdi => base::RDI,
        Register::R8 => base::R8,
        Register::R9 => base::R9,
        Register::R11 => base::R11,
        Register::R13 => base::R13,
        Register::Rdx => base::RDX,
        Register::Rbx => base::RBX,
        Register::R12 => base::R12,
        Register::R14 => base::R14,
        Register::R15 => base::R15,
    }
}

fn rbx_number(rule: RbxRule) -> u8 {
    match rule {
        RbxRule::Same => extended_rbx::SAME,
        RbxRule::AtCfa(at) => at
            .checked_neg()
            .and_then(|below| slots(below, u32::from(u8::MAX)))
            .and_then(|slot| u8::try_from(slot).ok())
            .filter(|slot| *slot >= extended_rbx::AT_CFA)
            .unwrap_or(extended_rbx::LOST),
        RbxRule::Lost => extended_rbx::LOST,
    }
}

fn cgo_call(goroutine: i32, above: i32, rbp: RbpRule) -> Extended {
    // The frame pointer is saved below the return address, if at all.
    let caller_rbp = match rbp {
        RbpRule::AtCfa(-16) => extended_rbp::AT_CFA,
        _ => extended_rbp::SAME,
    };
    Extended {
        base: base::CGO_CALL,
        caller_rbp,
        offset: goroutine,
        addend: above,
        ..Extended::default()
    }
}

fn of_goroutine(goroutine: &Goroutine) -> Extended {
    Extended {
        base: base::GOROUTINE,
        deref: u8::from(goroutine.is_called),
        offset: goroutine.current,
        rbp_offset: goroutine.rbp,
        ..Extended::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbolize::unwind::Unsupported;

    #[track_caller]
    fn check_word(rule: UnwindRule, kind: u32, offset: u32, caller_rbp: u32, slot: u32) {
        let expected = Packed::Word(Rule::new(kind, offset, caller_rbp, slot));
        assert_eq!(encode(&rule), expected, "{rule:?}");
    }

    #[track_caller]
    fn check_extended(rule: UnwindRule, expected: Extended) {
        assert_eq!(encode(&rule), Packed::Extended(expected), "{rule:?}");
    }

    #[test]
    fn what_fits_into_a_word() {
        use RbpRule::{AtCfa, Same};
        check_word(UnwindRule::frame(Register::Rsp, 0, Same), kind::SP, 0, 0, 0);
        check_word(UnwindRule::frame(Register::Rsp, 8, Same), kind::SP, 1, 0, 0);
        check_word(
            UnwindRule::frame(Register::Rbp, 16, AtCfa(-16)),
            kind::BP,
            2,
            1,
            2,
        );
        check_word(
            UnwindRule::frame(Register::Rsp, 16, AtCfa(0)),
            kind::SP,
            2,
            1,
            0,
        );
        // The largest value of each.
        check_word(
            UnwindRule::frame(Register::Rsp, 0x7fff8, Same),
            kind::SP,
            0xffff,
            0,
            0,
        );
        check_word(
            UnwindRule::frame(Register::Rsp, 8, AtCfa(-0x7ff8)),
            kind::SP,
            1,
            1,
            0xfff,
        );
    }

    #[test]
    fn one_more_is_extended() {
        use RbpRule::{AtCfa, AtRbp, Same};
        let cases = [
            (0x80000, Same, (extended_rbp::SAME, 0)),
            (-8, Same, (extended_rbp::SAME, 0)),
            (12, Same, (extended_rbp::SAME, 0)),
            (8, AtCfa(-0x8000), (extended_rbp::AT_CFA, -0x8000)),
            (8, AtCfa(8), (extended_rbp::AT_CFA, 8)),
            (8, AtCfa(-12), (extended_rbp::AT_CFA, -12)),
            (8, AtCfa(i32::MIN), (extended_rbp::AT_CFA, i32::MIN)),
            (8, AtRbp(0), (extended_rbp::AT_RBP, 0)),
        ];
        for (offset, rbp, (caller_rbp, rbp_offset)) in cases {
            let expected = Extended {
                base: base::RSP,
                caller_rbp,
                offset,
                rbp_offset,
                ..Extended::default()
            };
            check_extended(UnwindRule::frame(Register::Rsp, offset, rbp), expected);
        }
        let r10 = Extended {
            base: base::R10,
            ..Extended::default()
        };
        check_extended(UnwindRule::frame(Register::R10, 0, Same), r10);
    }

    #[test]
    fn where_rbx_is() {
        let cfa = Cfa {
            base: Register::Rsp,
            deref: false,
            offset: 64,
            addend: 0,
        };
        for (rbx, expected) in [
            (RbxRule::Same, extended_rbx::SAME),
            (RbxRule::AtCfa(-16), 2),
            (RbxRule::AtCfa(-255 * 8), 255),
            (RbxRule::AtCfa(-256 * 8), extended_rbx::LOST),
            // The return address is there, or nothing at all.
            (RbxRule::AtCfa(-8), extended_rbx::LOST),
            (RbxRule::AtCfa(8), extended_rbx::LOST),
            (RbxRule::AtCfa(-20), extended_rbx::LOST),
            (RbxRule::Lost, extended_rbx::LOST),
        ] {
            let rule = UnwindRule::FrameWithRbx {
                cfa,
                rbp: RbpRule::Same,
                rbx,
            };
            let expected = Extended {
                base: base::RSP,
                caller_rbx: expected,
                offset: 64,
                ..Extended::default()
            };
            check_extended(rule, expected);
        }
    }

    #[test]
    fn a_load_keeps_both_numbers() {
        let cfa = Cfa {
            base: Register::Rbp,
            deref: true,
            offset: -8,
            addend: 16,
        };
        let rule = UnwindRule::Frame {
            cfa,
            rbp: RbpRule::AtRbp(0),
        };
        let expected = Extended {
            base: base::RBP,
            deref: 1,
            caller_rbp: extended_rbp::AT_RBP,
            offset: -8,
            addend: 16,
            ..Extended::default()
        };
        check_extended(rule, expected);
    }

    #[test]
    fn without_a_load_they_are_one() {
        let sum = |offset, addend| UnwindRule::Frame {
            cfa: Cfa {
                base: Register::Rsp,
                deref: false,
                offset,
                addend,
            },
            rbp: RbpRule::Same,
        };
        check_word(sum(-8, 24), kind::SP, 2, 0, 0);
        assert_eq!(encode(&sum(i32::MAX, 1)), Packed::UNSUPPORTED);
    }

    #[test]
    fn special_rules() {
        for (rule, expected) in [
            (UnwindRule::Hole, special::FRAME_POINTER),
            (UnwindRule::EndOfStack, special::END),
            (UnwindRule::Signal, special::SIGNAL),
            (UnwindRule::Plt { limit: 11 }, special::PLT + 11),
            (UnwindRule::Plt { limit: 0 }, special::PLT),
            (UnwindRule::Plt { limit: 16 }, special::UNSUPPORTED),
            (UnwindRule::StackSwitch, special::STACK_SWITCH),
            (
                UnwindRule::Unsupported(Unsupported::Offset),
                special::UNSUPPORTED,
            ),
        ] {
            assert_eq!(encode(&rule), Packed::Word(Rule::special(expected)));
        }
    }
}
