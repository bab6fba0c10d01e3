//! Packs the frames of AArch64.

use super::{Packed, slots};
use probe_ebpf::rule::aarch64::{Frame, SCRATCH, base, saved};
use probe_ebpf::rule::{Rule, kind};
use symbolize::unwind::{Linked, Saved};

/// Packs a frame; `UNSUPPORTED` if neither form can express it.
pub fn encode(frame: &Linked) -> Packed {
    match word(frame) {
        Some(word) => Packed::Word(word),
        None => extended(frame).map_or(Packed::UNSUPPORTED, |frame| Packed::Extended(frame.pack())),
    }
}

/// Packs a frame into the word of a rule. `None` if a word cannot express it: a word has `cfa = sp
/// + 8n` or `cfa = x29 + 8n`, and saves nothing, x29 and x30 next to each other, or x30 alone.
fn word(frame: &Linked) -> Option<Rule> {
    let kind = match base_number(frame.base)? {
        base::SP => kind::SP,
        base::X29 => kind::BP,
        _ => return None,
    };
    let offset = slots(frame.offset, Rule::OFFSET_MAX)?;
    let below = |at: i32| slots(at.checked_neg()?, Rule::SLOT_MAX);
    let (saved, slot) = match (frame.x29, frame.x30) {
        (Saved::Not, Saved::Not) => (saved::NOTHING, 0),
        (Saved::Not, Saved::AtCfa(link)) => (saved::LINK, below(link)?),
        (Saved::AtCfa(pair), Saved::AtCfa(link)) if pair.checked_add(8) == Some(link) => {
            (saved::PAIR, below(pair)?)
        }
        _ => return None,
    };
    Some(Rule::new(kind, offset, saved, slot))
}

fn extended(frame: &Linked) -> Option<Frame> {
    let place = |saved| match saved {
        Saved::Not => None,
        Saved::AtCfa(at) => Some(at),
    };
    Some(Frame {
        base: base_number(frame.base)?,
        offset: frame.offset,
        x29: place(frame.x29),
        x30: place(frame.x30),
    })
}

/// Returns the number of a base register; `None` for a register that the walk does not have.
fn base_number(register: u8) -> Option<u8> {
    match register {
        31 => Some(base::SP),
        29 => Some(base::X29),
        other => {
            let index = SCRATCH.iter().position(|number| *number == other)?;
            Some(base::X30 + index as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(base: u8, offset: i32, x29: Saved, x30: Saved) -> Packed {
        encode(&Linked {
            base,
            offset,
            x29,
            x30,
        })
    }

    #[test]
    fn what_fits_into_a_word() {
        use Saved::{AtCfa, Not};
        for (packed, kind, offset, saved, slot) in [
            (frame(31, 0, Not, Not), kind::SP, 0, saved::NOTHING, 0),
            (frame(31, 48, Not, Not), kind::SP, 6, saved::NOTHING, 0),
            (
                frame(31, 32, AtCfa(-32), AtCfa(-24)),
                kind::SP,
                4,
                saved::PAIR,
                4,
            ),
            (
                frame(29, 16, AtCfa(-16), AtCfa(-8)),
                kind::BP,
                2,
                saved::PAIR,
                2,
            ),
            (frame(31, 16, Not, AtCfa(-16)), kind::SP, 2, saved::LINK, 2),
            // The largest value of each.
            (
                frame(31, 0x7fff8, Not, AtCfa(-0x7ff8)),
                kind::SP,
                0xffff,
                saved::LINK,
                0xfff,
            ),
        ] {
            assert_eq!(packed, Packed::Word(Rule::new(kind, offset, saved, slot)));
        }
    }

    #[test]
    fn what_needs_more() {
        use Saved::{AtCfa, Not};
        for (register, offset, x29, x30) in [
            // Saved apart, in the other order, or only x29.
            (31, 32, AtCfa(-32), AtCfa(-16)),
            (31, 32, AtCfa(-8), AtCfa(-16)),
            (31, 32, AtCfa(-16), Not),
            (31, 0x80000, Not, Not),
            (31, -16, Not, AtCfa(-8)),
            (31, 16, Not, AtCfa(8)),
            (16, 0, Not, AtCfa(-8)),
        ] {
            let place = |saved| match saved {
                Not => None,
                AtCfa(at) => Some(at),
            };
            let expected = Frame {
                base: if register == 31 { base::SP } else { base::X16 },
                offset,
                x29: place(x29),
                x30: place(x30),
            };
            let packed = frame(register, offset, x29, x30);
            assert_eq!(packed, Packed::Extended(expected.pack()));
        }
        // A register that the walk does not keep.
        assert_eq!(frame(21, 0, Not, Not), Packed::UNSUPPORTED);
    }
}
