//! The functions of Go's runtime that change to another stack: which rule is valid in which part of
//! them. Source: `src/runtime/asm_amd64.s` of Go 1.17 to 1.27.

use super::code::Code;
use super::{GoRow, WORD};
use crate::go::depths::Depths;
use crate::unwind::rule::{Goroutine, RbpRule, UnwindRule};

/// Offsets in the structures of this program's runtime, read from the code that uses them.
#[derive(Debug, Default)]
pub struct Layout {
    /// Offset of `curg` in `runtime.m`.
    pub(super) current: Option<i32>,
    /// Offset of `sched.bp` in `runtime.g`.
    pub(super) rbp: Option<i32>,
}

/// A part of a function, from `start` up to `end`, in which `rule` is valid. Both are distances
/// from the start of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSpan {
    pub start: u64,
    pub end: u64,
    pub rule: UnwindRule,
}

impl Layout {
    /// Reads the offsets from the code of two functions of the runtime.
    pub fn find(table: &Depths, code: &mut Code<'_>) -> Layout {
        let mut layout = Layout::default();
        for function in table.functions() {
            match table.name(&function) {
                // cmp curg(%rbx),%rax
                b"runtime.systemstack" => {
                    let code = code.of(function.start, function.end);
                    layout.current = behind(code, &[0x48, 0x3b, 0x83]).map(i32::from_le_bytes);
                }
                // mov %rbp,bp(%rdi) or bp(%rsi)
                b"runtime.morestack" => {
                    let code = code.of(function.start, function.end);
                    let place: Option<[u8; 1]> = behind(code, &[0x48, 0x89, 0x6f])
                        .or_else(|| behind(code, &[0x48, 0x89, 0x6e]));
                    layout.rbp = place.map(|[at]| i32::from(at));
                }
                _ => continue,
            }
            if layout.current.is_some() && layout.rbp.is_some() {
                break;
            }
        }
        layout
    }

    /// Returns the parts of a function in which the rows by depth are not valid.
    pub fn parts(&self, name: &[u8], code: &[u8], rows: &[GoRow]) -> Vec<RuleSpan> {
        let end = code.len() as u64;
        let mut writes = writes_of_rsp(code);
        let first = writes.next();
        let part = |start: Option<u64>, end, rule| {
            let start = start.filter(|start| *start < end)?;
            Some(RuleSpan { start, end, rule })
        };
        let parts = match name {
            // They change to another goroutine, and nothing returns.
            b"runtime.mcall" | b"gogo" => {
                vec![part(first, end, UnwindRule::EndOfStack)]
            }
            b"runtime.morestack" => vec![part(first, end, self.goroutine(false))],
            b"runtime.systemstack" if !has_frame_pointer(rows) => {
                let back = writes.next().unwrap_or(end);
                vec![part(first, back, self.goroutine(true))]
            }
            b"runtime.asmcgocall" => calls_of_c(code, rows).map(Some).collect(),
            _ => Vec::new(),
        };
        parts.into_iter().flatten().collect()
    }

    /// The rule for code that works for a goroutine; `is_called` as in [`Goroutine`].
    pub(super) fn goroutine(&self, is_called: bool) -> UnwindRule {
        // No goroutine is at address 0: with such an offset the walk reports that it is lost.
        UnwindRule::Goroutine(Goroutine {
            current: self.current.unwrap_or(0),
            rbp: self.rbp.unwrap_or(0),
            is_called,
        })
    }
}

/// Replaces the rows of a function by the parts.
pub fn apply(parts: &[RuleSpan], rows: &mut Vec<GoRow>) {
    for part in parts {
        let at_end = rows.iter().rev().find(|row| row.start <= part.end).copied();
        rows.retain(|row| !(part.start..part.end).contains(&row.start));
        let behind = rows.partition_point(|row| row.start < part.start);
        let is_known = rows.get(behind).is_some_and(|row| row.start == part.end);
        let rest = at_end.filter(|_| !is_known).map(|row| GoRow {
            start: part.end,
            rule: row.rule,
        });
        let first = GoRow {
            start: part.start,
            rule: part.rule,
        };
        rows.splice(behind..behind, std::iter::once(first).chain(rest));
    }
}

/// ```text
/// mov %rdi,8(%rsp) or 0x30(%rsp)       the goroutine
/// mov %rdi,(%rsp) or 0x28(%rsp)        how deep its stack is
/// call                                 C
/// mov %rsi,%rsp
/// movq $0,8(%rsp) or 0x30(%rsp)        there was no change
/// mov %rdx,(%rsp) or 0x28(%rsp)        the stack pointer
/// call
/// ```
fn calls_of_c(code: &[u8], rows: &[GoRow]) -> impl Iterator<Item = RuleSpan> {
    let by_stack = [0x48, 0x89, 0x7c, 0x24];
    let goroutine = behind(code, &by_stack).map_or(0, |[at]: [u8; 1]| at);
    let saved: [Vec<u8>; 2] = [0x3c, 0x14].map(|register: u8| match goroutine {
        8 => vec![0x48, 0x89, register, 0x24],
        at => vec![0x48, 0x89, register + 0x40, 0x24, at.wrapping_sub(8)],
    });
    let (above, rbp) = if has_frame_pointer(rows) {
        (2 * WORD, RbpRule::AtCfa(-2 * WORD))
    } else {
        (WORD, RbpRule::Same)
    };
    let rule = UnwindRule::CgoCall {
        goroutine: i32::from(goroutine),
        above,
        rbp,
    };
    let back = memchr::memmem::find(code, &[0x48, 0x89, 0xf4]).unwrap_or(0);
    let len = code.len();
    let mut parts = Vec::new();
    for (saved, from) in saved.iter().zip([0, back + 3]) {
        let rest = code.get(from..).unwrap_or_default();
        let found = memchr::memmem::find(rest, saved).filter(|_| goroutine >= 8 && back > 0);
        let Some(found) = found else { continue };
        let start = from + found + saved.len();
        let until = code.get(start..).unwrap_or_default();
        let end = memchr::memmem::find(until, &[0x48, 0x89, 0xf4]).map_or(len, |at| start + at);
        parts.push(RuleSpan {
            start: start as u64,
            end: end as u64,
            rule,
        });
    }
    parts.into_iter()
}

fn has_frame_pointer(rows: &[GoRow]) -> bool {
    rows.iter().any(|row| row.rule == UnwindRule::StackSwitch)
}

/// The offsets after instructions that load rsp from memory or from another register. These
/// functions are short, and no other byte sequence in them looks like such an instruction.
fn writes_of_rsp(code: &[u8]) -> impl Iterator<Item = u64> {
    code.windows(4).enumerate().filter_map(|(at, bytes)| {
        let len = match *bytes {
            // mov disp(%reg),%rsp, with a short displacement
            [0x48 | 0x49, 0x8b, modrm, _] if modrm & 0xf8 == 0x60 && modrm != 0x64 => 4,
            // mov %reg,%rsp
            [0x48 | 0x4c, 0x89, modrm, _] if modrm & 0xc7 == 0xc4 => 3,
            _ => return None,
        };
        Some((at + len) as u64)
    })
}

/// Returns the bytes after a sequence of bytes.
fn behind<const N: usize>(code: &[u8], sequence: &[u8]) -> Option<[u8; N]> {
    let at = memchr::memmem::find(code, sequence)?;
    code.get(at + sequence.len()..)?.first_chunk().copied()
}
