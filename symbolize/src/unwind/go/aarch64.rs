//! Rows of Go functions on AArch64 (`src/cmd/internal/obj/arm64/obj7.go` of Go): the return
//! address is at the bottom of the frame, and the frame pointer in the word below.
//!
//! ```text
//! str  x30, [sp, #-N]!      sub  x20, sp, #N             delta N from here on
//! stur x29, [sp, #-8]       stp  x29, x30, [x20, #-8]
//! sub  x29, sp, #8          mov  sp, x20
//!                           sub  x29, sp, #8
//! ```
//!
//! Three functions change to the thread's own stack (`src/runtime/asm_arm64.s`). Up to Go 1.26 they
//! load x29 from there as well, so that it does not lead back to the goroutine:
//!
//! ```text
//! runtime.mcall        mov sp, x0; ldr x29, [x28, #bp]; …    nothing comes back
//! runtime.morestack    mov sp, x0; ldr x29, [x28, #bp]; …    for the goroutine in m.curg
//! runtime.systemstack  mov sp, x3; ldr x29, [x28, #bp]; blr; …; mov sp, x0
//! ```

use super::GoRow;
use super::code::Code;
use super::switch::{self, Layout, RuleSpan};
use crate::bytes::u32_in;
use crate::go::depths::Depths;
use crate::unwind::rule::{Linked, Saved, Unsupported, UnwindRule};

const SAVE_FRAME_POINTER: u32 = 0xf81f_83fd; // stur x29, [sp, #-8]
const SET_FRAME_POINTER: u32 = 0xd100_23fd; // sub x29, sp, #8

// Instructions without their offsets.
const LOAD_X29_BY_X28: u32 = 0xf940_039d; // ldr x29, [x28, #N]
const STORE_X29_BY_X28: u32 = 0xf900_039d; // str x29, [x28, #N]
const LOAD_BY_X4: u32 = 0xf940_0080; // ldr x0, [x4, #N]
const COMPARE_WITH_X28: u32 = 0xeb1c_001f; // cmp x0, x28

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// Reads offsets in the structures of this program's runtime from the code that uses them.
pub fn layout(table: &Depths, code: &mut Code<'_>) -> Layout {
    let mut layout = Layout::default();
    for function in table.functions() {
        let name = table.name(&function);
        if name == b"runtime.systemstack" {
            layout.current = current_in(code.of(function.start, function.end));
        } else if name == b"runtime.morestack" {
            let code = code.of(function.start, function.end);
            layout.rbp = words(code).find_map(|(_, word)| offset_of(word, STORE_X29_BY_X28));
        }
        if layout.current.is_some() && layout.rbp.is_some() {
            break;
        }
    }
    layout
}

/// `runtime.systemstack` compares the goroutine with three of its thread: `gsignal`, `g0`, `curg`.
/// Returns the offset of the last one.
fn current_in(code: &[u8]) -> Option<i32> {
    let mut compared =
        words(code)
            .zip(words(code).skip(1))
            .filter_map(|((_, load), (_, compare))| {
                let register = compare >> 5 & 31;
                let is_of_it = compare & !(31 << 5) == COMPARE_WITH_X28 && load & 31 == register;
                offset_of(load & !31, LOAD_BY_X4).filter(|_| is_of_it)
            });
    compared.nth(2)
}

/// Returns the rows of a function. `deltas` are the distances of the stack pointer below the return
/// address, each from a code offset on. A function that `writes_sp` changes to another stack: then
/// only the frame pointer leads back, if there is one.
pub fn rows(
    name: &[u8],
    code: &[u8],
    deltas: impl Iterator<Item = (u64, i32)>,
    writes_sp: bool,
    layout: &Layout,
) -> Vec<GoRow> {
    let leaving = if writes_sp {
        leaving(name, code, layout)
    } else {
        Leaving::Never
    };
    // A signal inserts a call of it: that pushes two words that are not part of the function's
    // frame.
    let pushed = if name == b"runtime.asyncPreempt" {
        16
    } else {
        0
    };
    let leads_back_by_x29 = writes_sp && leaving == Leaving::Never;
    let mut rows = plain_rows(code, deltas, pushed, leads_back_by_x29);
    match leaving {
        Leaving::Never if !writes_sp || has_frame(&rows) => {}
        // Functions without a frame change to another stack, and nothing returns.
        Leaving::Never => {
            let part =
                first_write(code).and_then(|start| part(start, code, UnwindRule::EndOfStack));
            switch::apply(part.as_slice(), &mut rows);
        }
        Leaving::In(part) => switch::apply(part.as_slice(), &mut rows),
    }
    rows
}

/// Returns the rows from the table of deltas and the beginning of the code.
fn plain_rows(
    code: &[u8],
    deltas: impl Iterator<Item = (u64, i32)>,
    pushed: i32,
    leads_back_by_x29: bool,
) -> Vec<GoRow> {
    let instruction = |at: u64| u32_in(code, usize::try_from(at).ok()?);
    let mut rows = Vec::new();
    let mut push = |start, rule| rows.push(GoRow { start, rule });
    for (start, delta) in deltas {
        if delta < 0 {
            break;
        }
        if delta == 0 {
            push(start, frame(0, Saved::Not, Saved::Not));
            continue;
        }
        let Some(depth) = delta.checked_add(pushed) else {
            break;
        };
        let (Some(x30), Some(x29)) = (depth.checked_neg(), (-8i32).checked_sub(depth)) else {
            break;
        };
        let saved = frame(depth, Saved::AtCfa(x29), Saved::AtCfa(x30));
        let mut at = start;
        if instruction(at) == Some(SAVE_FRAME_POINTER) {
            push(at, frame(depth, Saved::Not, Saved::AtCfa(x30)));
            at += INSTRUCTION;
        }
        push(at, saved);
        if leads_back_by_x29 && instruction(at) == Some(SET_FRAME_POINTER) {
            push(at + INSTRUCTION, UnwindRule::StackSwitch);
        }
    }
    rows
}

fn has_frame(rows: &[GoRow]) -> bool {
    let leaf = frame(0, Saved::Not, Saved::Not);
    rows.iter().any(|row| row.rule != leaf)
}

/// How a function runs on another stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Like most functions that write the stack pointer: x29 leads back.
    Never,
    /// In a part of its code; elsewhere it is on its caller's stack. `None` if there is no such
    /// code.
    In(Option<RuleSpan>),
}

/// Returns how functions change stacks that have to be recognized by name.
fn leaving(name: &[u8], code: &[u8], layout: &Layout) -> Leaving {
    let Some(start) = first_write(code) else {
        return Leaving::Never;
    };
    // x29 of the other stack is loaded right after.
    let loses_x29 =
        u32_in(code, start as usize).is_some_and(|word| offset_of(word, LOAD_X29_BY_X28).is_some());
    match name {
        b"runtime.mcall" => Leaving::In(part(start, code, UnwindRule::EndOfStack)),
        b"runtime.morestack" => Leaving::In(part(start, code, layout.goroutine(false))),
        b"runtime.systemstack" => {
            let back = writes_of_sp(code).nth(1).unwrap_or(code.len() as u64);
            let rule = if loses_x29 {
                layout.goroutine(true)
            } else {
                UnwindRule::StackSwitch
            };
            Leaving::In(part(start, code.get(..back as usize).unwrap_or(code), rule))
        }
        // The calling goroutine cannot be found from here.
        b"runtime.asmcgocall" if loses_x29 => Leaving::In(part(start, code, LOST)),
        _ if name.starts_with(b"runtime.morestack") => Leaving::In(part(start, code, LOST)),
        _ => Leaving::Never,
    }
}

const LOST: UnwindRule = UnwindRule::Unsupported(Unsupported::ReturnAddress);

/// Returns the part from `start` to the end of the code.
fn part(start: u64, code: &[u8], rule: UnwindRule) -> Option<RuleSpan> {
    let end = code.len() as u64;
    (start < end).then_some(RuleSpan { start, end, rule })
}

fn first_write(code: &[u8]) -> Option<u64> {
    writes_of_sp(code).next()
}

/// The offsets after instructions that write the stack pointer.
fn writes_of_sp(code: &[u8]) -> impl Iterator<Item = u64> {
    let writes = words(code).filter(|(_, word)| is_write_of_sp(*word));
    writes.map(|(at, _)| at + INSTRUCTION)
}

/// The instructions with their offsets.
fn words(code: &[u8]) -> impl Iterator<Item = (u64, u32)> {
    let places = (0..code.len()).step_by(INSTRUCTION as usize);
    places.map_while(|at| Some((at as u64, u32_in(code, at)?)))
}

/// Returns the offset field of a 64-bit load or store that otherwise equals `wanted`: in words,
/// from bit 10 on.
fn offset_of(word: u32, wanted: u32) -> Option<i32> {
    const OFFSET: u32 = 0xfff << 10;
    (word & !OFFSET == wanted).then_some(((word & OFFSET) >> 10) as i32 * 8)
}

/// `mov sp, xN`
fn is_write_of_sp(instruction: u32) -> bool {
    instruction & 0xffff_fc1f == 0x9100_001f
}

fn frame(offset: i32, x29: Saved, x30: Saved) -> UnwindRule {
    UnwindRule::Linked(Linked::from_sp(offset, x29, x30))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(code: &[u32]) -> Vec<u8> {
        code.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn plain(rows: &[GoRow]) -> Vec<(u64, UnwindRule)> {
        rows.iter().map(|row| (row.start, row.rule)).collect()
    }

    const STORE: u32 = 0xf81e_0ffe; // str x30, [sp, #-32]!
    const NOP: u32 = 0xd503_201f;

    #[test]
    fn a_frame_with_its_pointer_below() {
        let code = bytes(&[STORE, SAVE_FRAME_POINTER, SET_FRAME_POINTER, NOP, NOP]);
        let deltas = [(0, 0), (4, 32), (16, 0)];
        let leaf = frame(0, Saved::Not, Saved::Not);
        let expected = [
            (0, leaf),
            (4, frame(32, Saved::Not, Saved::AtCfa(-32))),
            (8, frame(32, Saved::AtCfa(-40), Saved::AtCfa(-32))),
            (16, leaf),
        ];
        let found = rows(
            b"main.f",
            &code,
            deltas.into_iter(),
            false,
            &Layout::default(),
        );
        assert_eq!(plain(&found), expected);
        // What a signal has called returns above the words that it pushed.
        let found = rows(
            b"runtime.asyncPreempt",
            &code,
            deltas.into_iter(),
            false,
            &LAYOUT,
        );
        assert_eq!(
            found[2].rule,
            frame(48, Saved::AtCfa(-56), Saved::AtCfa(-48))
        );
        // On another stack the frame pointer leads back.
        let found = rows(
            b"runtime.nanotime1",
            &code,
            deltas.into_iter(),
            true,
            &Layout::default(),
        );
        let expected = [
            expected[0],
            expected[1],
            expected[2],
            (12, UnwindRule::StackSwitch),
            expected[3],
        ];
        assert_eq!(plain(&found), expected);
    }

    #[test]
    fn what_leaves_for_another_stack() {
        let code = bytes(&[NOP, MOVE_SP, NOP]);
        let leaf = frame(0, Saved::Not, Saved::Not);
        let of = |name: &[u8], code: &[u8], deltas: &[(u64, i32)]| {
            let mut found = plain(&rows(name, code, deltas.iter().copied(), true, &LAYOUT));
            // Rows after the code's end are not collected.
            found.retain(|(start, _)| *start != code.len() as u64);
            found
        };
        assert_eq!(
            of(b"gogo", &code, &[(0, 0)]),
            [(0, leaf), (8, UnwindRule::EndOfStack)]
        );
        let expected = [(0, leaf), (8, LOST)];
        assert_eq!(of(b"runtime.morestack_noctxt", &code, &[(0, 0)]), expected);
        // The space that it reserves there is not a frame.
        let deltas = [(0, 0), (12, 16)];
        let expected = [(0, leaf), (8, UnwindRule::EndOfStack)];
        assert_eq!(of(b"runtime.mcall", &code, &deltas), expected);
        let code = bytes(&[NOP, MOVE_SP, TAKE_X29, NOP]);
        let expected = [(0, leaf), (8, LAYOUT.goroutine(false))];
        assert_eq!(of(b"runtime.morestack", &code, &deltas), expected);
        let code = bytes(&[NOP, MOVE_SP, TAKE_X29, NOP]);
        let expected = [(0, leaf), (8, LOST)];
        assert_eq!(of(b"runtime.asmcgocall", &code, &deltas), expected);
        // Nonsensical input does not panic.
        let deltas = [(0, -1), (4, i32::MAX)];
        assert_eq!(of(b"", &[], &deltas), []);
        assert_eq!(of(b"", &[1], &[(u64::MAX, 16)]).len(), 1);
        for name in [&b"runtime.systemstack"[..], b"runtime.mcall"] {
            for cut in 0..code.len() {
                let _ = of(name, &code[..cut], &deltas);
            }
        }
    }

    /// `runtime.systemstack`, from its beginning to its return, without irrelevant instructions.
    fn systemstack(takes_x29: u32) -> Vec<u8> {
        bytes(&[
            0xf81f_0ffe, // str x30, [sp, #-16]!
            SAVE_FRAME_POINTER,
            SET_FRAME_POINTER,
            0xf940_2885, // ldr x5, [x4, #80]
            0xeb1c_00bf, // cmp x5, x28
            0xf940_0085, // ldr x5, [x4]
            0xeb1c_00bf, // cmp x5, x28
            0xf940_6086, // ldr x6, [x4, #192]
            0xeb1c_00df, // cmp x6, x28
            0x9100_007f, // mov sp, x3
            takes_x29,
            0xd63f_0060, // blr x3
            MOVE_SP,
            TAKE_X29,
        ])
    }

    #[test]
    fn what_comes_back_by_the_goroutine() {
        let deltas = [(0, 0), (4, 16)];
        let leaf = frame(0, Saved::Not, Saved::Not);
        let saved = frame(16, Saved::AtCfa(-24), Saved::AtCfa(-16));
        let expected = |rule| {
            [
                (0, leaf),
                (4, frame(16, Saved::Not, Saved::AtCfa(-16))),
                (8, saved),
                (40, rule),
                (52, saved),
            ]
        };
        let of = |code: &[u8]| {
            plain(&rows(
                b"runtime.systemstack",
                code,
                deltas.into_iter(),
                true,
                &LAYOUT,
            ))
        };
        let code = systemstack(TAKE_X29);
        assert_eq!(current_in(&code), Some(192));
        assert_eq!(of(&code), expected(LAYOUT.goroutine(true)));
        // Since Go 1.27 x29 stays.
        assert_eq!(of(&systemstack(NOP)), expected(UnwindRule::StackSwitch));
    }

    const MOVE_SP: u32 = 0x9100_001f; // mov sp, x0
    const TAKE_X29: u32 = 0xf940_379d; // ldr x29, [x28, #104]
    const LAYOUT: Layout = Layout {
        current: Some(192),
        rbp: Some(104),
    };
}
