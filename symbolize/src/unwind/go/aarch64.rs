//! Rows of Go functions on AArch64 (`src/cmd/internal/obj/arm64/obj7.go` of Go): the return
//! address is at the bottom of the frame, and the frame pointer in the word below.
//!
//! ```text
//! str  x30, [sp, #-N]!      sub  x20, sp, #N             delta N from here on
//! stur x29, [sp, #-8]       stp  x29, x30, [x20, #-8]
//! sub  x29, sp, #8          mov  sp, x20
//!                           sub  x29, sp, #8
//! ```

use super::GoRow;
use crate::bytes::u32_in;
use crate::unwind::rule::{Linked, Saved, Unsupported, UnwindRule};

const SAVE_FRAME_POINTER: u32 = 0xf81f_83fd; // stur x29, [sp, #-8]
const SET_FRAME_POINTER: u32 = 0xd100_23fd; // sub x29, sp, #8

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// The rows of a function. `deltas` are how far the stack pointer is down, from a distance on.
/// One that `writes_sp` changes to another stack: then the frame pointer alone leads back, if
/// there is one.
pub fn rows(
    name: &[u8],
    code: &[u8],
    deltas: impl Iterator<Item = (u64, i32)>,
    writes_sp: bool,
) -> Vec<GoRow> {
    let instruction = |at: u64| u32_in(code, usize::try_from(at).ok()?);
    let mut rows = Vec::new();
    let mut push = |start, rule| rows.push(GoRow { start, rule });
    let mut has_frame = false;
    for (start, delta) in deltas {
        if delta < 0 {
            break;
        }
        if delta == 0 {
            push(start, frame(0, Saved::Not, Saved::Not));
            continue;
        }
        has_frame = true;
        let (Some(x30), Some(x29)) = (delta.checked_neg(), (-8i32).checked_sub(delta)) else {
            break;
        };
        let saved = frame(delta, Saved::AtCfa(x29), Saved::AtCfa(x30));
        let mut at = start;
        if instruction(at) == Some(SAVE_FRAME_POINTER) {
            push(at, frame(delta, Saved::Not, Saved::AtCfa(x30)));
            at += INSTRUCTION;
        }
        push(at, saved);
        if writes_sp && instruction(at) == Some(SET_FRAME_POINTER) {
            push(at + INSTRUCTION, UnwindRule::StackSwitch);
        }
    }
    if writes_sp && !has_frame {
        leave(name, code, &mut rows);
    }
    rows
}

/// Functions without a frame leave for another stack, and nothing comes back; but for
/// `morestack`, of which the goroutine that called it cannot be found here.
fn leave(name: &[u8], code: &[u8], rows: &mut Vec<GoRow>) {
    let words = (0..code.len()).step_by(INSTRUCTION as usize);
    let mut words = words.filter(|at| u32_in(code, *at).is_some_and(is_write_of_sp));
    let Some(first) = words.next() else {
        return;
    };
    let start = first as u64 + INSTRUCTION;
    rows.retain(|row| row.start < start);
    let rule = match name.starts_with(b"runtime.morestack") {
        true => UnwindRule::Unsupported(Unsupported::ReturnAddress),
        false => UnwindRule::EndOfStack,
    };
    rows.push(GoRow { start, rule });
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
        let found = rows(b"main.f", &code, deltas.into_iter(), false);
        assert_eq!(plain(&found), expected);
        // On another stack the frame pointer leads back.
        let found = rows(b"runtime.systemstack", &code, deltas.into_iter(), true);
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
        let code = bytes(&[NOP, 0x9100_001f, NOP]);
        let leaf = frame(0, Saved::Not, Saved::Not);
        let found = rows(b"runtime.mcall", &code, [(0, 0)].into_iter(), true);
        assert_eq!(plain(&found), [(0, leaf), (8, UnwindRule::EndOfStack)]);
        let found = rows(b"runtime.morestack", &code, [(0, 0)].into_iter(), true);
        let lost = UnwindRule::Unsupported(Unsupported::ReturnAddress);
        assert_eq!(plain(&found), [(0, leaf), (8, lost)]);
        // Nonsense is no panic.
        let found = rows(b"", &[], [(0, -1), (4, i32::MAX)].into_iter(), true);
        assert_eq!(plain(&found), []);
        let found = rows(b"", &[1], [(u64::MAX, 16)].into_iter(), true);
        assert_eq!(found.len(), 1);
    }
}
