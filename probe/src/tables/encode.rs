//! Packs an unwind rule: into one word if it fits, else into an extended rule.

use probe_ebpf::rule::{Extended, Rule, base, caller_rbp, extended_rbp, kind, special};
use symbolize::unwind::{Cfa, RbpRule, Register, UnwindRule};

/// Bytes of a stack slot.
const SLOT: i32 = 8;

/// A packed rule that does not know its number yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packed {
    Word(Rule),
    Extended(Extended),
}

impl Packed {
    pub const HOLE: Packed = Packed::Word(Rule::special(special::FRAME_POINTER));
    pub const UNSUPPORTED: Packed = Packed::Word(Rule::special(special::UNSUPPORTED));
}

/// The packed form; `UNSUPPORTED` for what neither form can say.
pub fn encode(rule: &UnwindRule) -> Packed {
    let special = |which| Packed::Word(Rule::special(which));
    match *rule {
        UnwindRule::Hole => Packed::HOLE,
        UnwindRule::EndOfStack => special(special::END),
        UnwindRule::Signal => special(special::SIGNAL),
        UnwindRule::Plt { limit: 11 } => special(special::PLT_11),
        UnwindRule::Plt { limit: 10 } => special(special::PLT_10),
        UnwindRule::Plt { .. } | UnwindRule::Unsupported(_) => Packed::UNSUPPORTED,
        UnwindRule::Frame { cfa, rbp } => match word(&cfa, rbp) {
            Some(word) => Packed::Word(word),
            None => extended(&cfa, rbp).map_or(Packed::UNSUPPORTED, Packed::Extended),
        },
    }
}

/// `cfa = rsp or rbp + 8n`, rbp unchanged or at `cfa - 8n`.
fn word(cfa: &Cfa, rbp: RbpRule) -> Option<Rule> {
    let kind = match cfa.base {
        Register::Rsp => kind::RSP,
        Register::Rbp => kind::RBP,
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
    // Without a load in between the two are one number: fewer rules.
    let (offset, addend) = match cfa.deref {
        true => (cfa.offset, cfa.addend),
        false => (cfa.offset.checked_add(cfa.addend)?, 0),
    };
    let (caller_rbp, rbp_offset) = match rbp {
        RbpRule::Same => (extended_rbp::SAME, 0),
        RbpRule::AtCfa(at) => (extended_rbp::AT_CFA, at),
        RbpRule::AtRbp(at) => (extended_rbp::AT_RBP, at),
    };
    Some(Extended {
        base: base_number(cfa.base)?,
        deref: u8::from(cfa.deref),
        caller_rbp,
        reserved: 0,
        offset,
        addend,
        rbp_offset,
    })
}

/// The registers that the walk knows in an interrupted function.
fn base_number(register: Register) -> Option<u8> {
    Some(match register {
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
        Register::Rdx | Register::Rbx | Register::R12 | Register::R14 | Register::R15 => {
            return None;
        }
    })
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
        check_word(
            UnwindRule::frame(Register::Rsp, 0, Same),
            kind::RSP,
            0,
            0,
            0,
        );
        check_word(
            UnwindRule::frame(Register::Rsp, 8, Same),
            kind::RSP,
            1,
            0,
            0,
        );
        check_word(
            UnwindRule::frame(Register::Rbp, 16, AtCfa(-16)),
            kind::RBP,
            2,
            1,
            2,
        );
        check_word(
            UnwindRule::frame(Register::Rsp, 16, AtCfa(0)),
            kind::RSP,
            2,
            1,
            0,
        );
        // The largest of each.
        check_word(
            UnwindRule::frame(Register::Rsp, 0x7fff8, Same),
            kind::RSP,
            0xffff,
            0,
            0,
        );
        check_word(
            UnwindRule::frame(Register::Rsp, 8, AtCfa(-0x7ff8)),
            kind::RSP,
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
        check_word(sum(-8, 24), kind::RSP, 2, 0, 0);
        assert_eq!(encode(&sum(i32::MAX, 1)), Packed::UNSUPPORTED);
    }

    #[test]
    fn special_rules() {
        for (rule, expected) in [
            (UnwindRule::Hole, special::FRAME_POINTER),
            (UnwindRule::EndOfStack, special::END),
            (UnwindRule::Signal, special::SIGNAL),
            (UnwindRule::Plt { limit: 11 }, special::PLT_11),
            (UnwindRule::Plt { limit: 10 }, special::PLT_10),
            (UnwindRule::Plt { limit: 12 }, special::UNSUPPORTED),
            (
                UnwindRule::Unsupported(Unsupported::Offset),
                special::UNSUPPORTED,
            ),
            (
                UnwindRule::frame(Register::Rbx, 8, RbpRule::Same),
                special::UNSUPPORTED,
            ),
        ] {
            assert_eq!(encode(&rule), Packed::Word(Rule::special(expected)));
        }
    }
}
