//! The *trampolines* of `-X perf` and `-X perf_jit`: a few bytes of code for each Python
//! function, all alike, that call the interpreter's loop, so that `perf` has an address for
//! each function. They have no unwind information, and up to 3.13 no frame pointer.
//! (`Python/asm_trampoline.S`, `Python/perf_trampoline.c`)

use crate::unwind::{RbpRule, Register, Row, RuleId, UnwindRule};
use crate::wire::Taken;
use crate::{Segment, Segments};

/// Number of bytes from the start of such a mapping that are needed to recognize its kind.
pub const LOOKED_AT: u32 = 1024;

/// CPython maps trampolines in arenas of 64 KiB, each of which begins with one.
const ARENA: u32 = 64 << 10;

/// Neighbouring arenas may be one mapping: maximum length of it that is covered by these rules.
const COVERED: u32 = 16 * ARENA;

/// The kinds of trampolines.
const SHAPES: [Shape; 3] = [
    // sub $8,%rsp; call *%rcx; add $8,%rsp; ret
    Shape {
        code: b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3",
        steps: &[(0, OUTSIDE), (4, RSP_16), (10, OUTSIDE)],
    },
    // endbr64; the same
    Shape {
        code: b"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3",
        steps: &[(0, OUTSIDE), (8, RSP_16), (14, OUTSIDE)],
    },
    // From 3.14 on: endbr64; push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret
    Shape {
        code: b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3",
        steps: &[(0, OUTSIDE), (5, PUSHED), (8, BY_RBP), (11, OUTSIDE)],
    },
];

/// Indexes of rules in [`Trampoline::rules`].
const OUTSIDE: RuleId = RuleId(1);
const RSP_16: RuleId = RuleId(2);
const PUSHED: RuleId = RuleId(3);
const BY_RBP: RuleId = RuleId(4);

struct Shape {
    code: &'static [u8],
    /// The rules, each with the byte from which on it applies.
    steps: &'static [(u32, RuleId)],
}

/// The trampolines of a process, which are all of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Trampoline {
    shape: u8,
    /// Distance from the start of one trampoline to the next.
    every: u16,
}

impl Trampoline {
    /// Recognizes the kind of trampolines at the start of a mapping; `None` if there are none, or
    /// only one, so that their distance is unknown.
    pub fn recognize(code: &[u8]) -> Option<Trampoline> {
        let is_it = |shape: &Shape| code.starts_with(shape.code);
        let number = SHAPES.iter().position(is_it)?;
        let shape = SHAPES[number].code;
        let rest = code.get(shape.len()..)?;
        let next = rest.windows(shape.len()).position(|bytes| bytes == shape)?;
        // Between them there is nothing, or unwind information for debuggers, but no other code
        // that these rules would apply to: they begin at regular distances.
        let every = shape.len() + next;
        let third = code.get(2 * every..).unwrap_or_default();
        let third = &third[..third.len().min(shape.len())];
        let is_even = shape.starts_with(third) || third.iter().all(|byte| *byte == 0);
        is_even.then_some(Trampoline {
            shape: number as u8,
            every: u16::try_from(every).ok()?,
        })
    }

    /// Encodes the kind for another process.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(self.shape);
        out.extend(self.every.to_le_bytes());
    }

    /// Decodes the result of [`Trampoline::write`]; `None` if [`Trampoline::recognize`] cannot have
    /// found such a kind.
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Trampoline> {
        let (shape, every) = (bytes.u8()?, [bytes.u8()?, bytes.u8()?]);
        let every = u16::from_le_bytes(every);
        let len = SHAPES.get(usize::from(shape))?.code.len();
        let is_possible = (len..LOOKED_AT as usize).contains(&every.into());
        is_possible.then_some(Trampoline { shape, every })
    }

    /// Returns which rule applies from which offset of the mapping on.
    pub fn rows(self) -> Vec<Row> {
        let shape = &SHAPES[usize::from(self.shape)];
        let every = u32::from(self.every);
        let mut rows: Vec<Row> = Vec::new();
        for arena in (0..COVERED).step_by(ARENA as usize) {
            for start in (0..ARENA - every).step_by(every as usize) {
                for (step, rule) in shape.steps {
                    let row = Row {
                        start: arena + start + step,
                        rule: *rule,
                    };
                    if rows.last().is_none_or(|last| last.rule != row.rule) {
                        rows.push(row);
                    }
                }
            }
        }
        rows.push(Row {
            start: COVERED,
            rule: RuleId::HOLE,
        });
        rows
    }

    /// The rules that [`rows`](Self::rows) refers to.
    pub fn rules() -> [UnwindRule; 5] {
        [
            UnwindRule::Hole,
            UnwindRule::frame(Register::Rsp, 8, RbpRule::Same),
            UnwindRule::frame(Register::Rsp, 16, RbpRule::Same),
            UnwindRule::frame(Register::Rsp, 16, RbpRule::AtCfa(-16)),
            UnwindRule::frame(Register::Rbp, 16, RbpRule::AtCfa(-16)),
        ]
    }

    /// Segments that describe the mapping like a file.
    pub fn segments() -> Segments {
        Segments::new(vec![Segment {
            offset: 0,
            vaddr: 0,
            filesz: COVERED.into(),
            executable: true,
        }])
    }

    /// Returns the rule of a place, for tests.
    #[cfg(test)]
    fn rule_at(self, place: u32) -> UnwindRule {
        let rows = self.rows();
        let behind = rows.partition_point(|row| row.start <= place);
        Trampoline::rules()[usize::from(rows[behind - 1].rule.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(shape: usize, every: usize, count: usize) -> Vec<u8> {
        let mut code = vec![0; LOOKED_AT as usize];
        for number in 0..count {
            let start = number * every;
            let shape = SHAPES[shape].code;
            code[start..start + shape.len()].copy_from_slice(shape);
        }
        code
    }

    #[test]
    fn trampolines_are_known_by_their_shape() {
        // 3.12, 3.13, 3.14, and `-X perf_jit` with data in between.
        for (shape, every) in [(0, 11), (0, 16), (1, 16), (2, 32), (2, 272)] {
            let found = Trampoline::recognize(&mapping(shape, every, 3)).unwrap();
            let expected = (shape as u8, every as u16);
            assert_eq!((found.shape, found.every), expected);
            let mut bytes = Vec::new();
            found.write(&mut bytes);
            assert_eq!(Trampoline::take(&mut Taken(&bytes)), Some(found));
        }
        assert_eq!(Trampoline::recognize(&mapping(0, 11, 1)), None);
        assert_eq!(Trampoline::recognize(&[]), None);
        assert_eq!(Trampoline::recognize(SHAPES[0].code), None);
        let mut other = mapping(0, 16, 2);
        other[32..40].copy_from_slice(b"\x90\x90\x90\x90\x90\x90\x90\x90");
        assert_eq!(Trampoline::recognize(&other), None);
    }

    #[test]
    fn kinds_that_cannot_be_are_not_believed() {
        for bytes in [[3, 16, 0], [0, 10, 0], [0, 0, 4], [0, 0, 0], [u8::MAX; 3]] {
            assert_eq!(Trampoline::take(&mut Taken(&bytes)), None, "{bytes:?}");
        }
        // The smallest and the largest distance have rules.
        for bytes in [[0, 11, 0], [2, 255, 3]] {
            let kind = Trampoline::take(&mut Taken(&bytes)).unwrap();
            assert!(!kind.rows().is_empty());
        }
    }

    #[test]
    fn every_instruction_has_its_rule() {
        let found = Trampoline::recognize(&mapping(0, 11, 3)).unwrap();
        let [_, outside, rsp_16, pushed, by_rbp] = Trampoline::rules();
        for start in [0, 11, 110, ARENA, ARENA + 11] {
            for (step, rule) in [
                (0, outside),
                (4, rsp_16),
                (5, rsp_16),
                (6, rsp_16),
                (10, outside),
            ] {
                assert_eq!(found.rule_at(start + step), rule, "{start} + {step}");
            }
        }
        let found = Trampoline::recognize(&mapping(2, 32, 3)).unwrap();
        for (step, rule) in [
            (0, outside),
            (4, outside),
            (5, pushed),
            (8, by_rbp),
            (10, by_rbp),
            (11, outside),
        ] {
            assert_eq!(found.rule_at(64 + step), rule, "{step}");
        }
        let rows = found.rows();
        assert!(rows.is_sorted_by_key(|row| row.start));
        assert!(rows.windows(2).all(|two| two[0].rule != two[1].rule));
    }

    #[test]
    fn table_addresses_are_offsets_of_the_mapping() {
        let segments = Trampoline::segments();
        assert_eq!(
            segments.to_link(crate::FileOffset(0)),
            Some(crate::LinkAddr(0))
        );
    }
}
