//! Start code of AArch64 (sysdeps/aarch64/crti.S of glibc).

use crate::bytes::u32_in;
use crate::unwind::rule::{Linked, Saved, UnwindRule};

const SAVE: u32 = 0xa9bf_7bfd; // stp x29, x30, [sp, #-16]!
const SET: u32 = 0x9100_03fd; // mov x29, sp
const RESTORE: u32 = 0xa8c1_7bfd; // ldp x29, x30, [sp], #16
const RETURN: u32 = 0xd65f_03c0; // ret

/// Beginnings of programs that compilers do not write: the first instruction has no caller, and the
/// code sets that up itself, as in musl.
const BEGINNINGS: [u32; 2] = [
    0xd280_001d, // mov x29, #0
    0xd280_001e, // mov x30, #0
];

/// Whether a program begins with this code.
pub fn begins_a_program(code: &[u8]) -> bool {
    let first = u32_in(code, 0);
    let second = u32_in(code, 4);
    let begin = first.filter(|first| !is_hint(*first)).or(second);
    begin.is_some_and(|begin| BEGINNINGS.contains(&begin))
}

/// Returns the rules of `_init` or `_fini`, by distance from its start; `None` if it has another
/// form.
pub fn rows(code: &[u8]) -> Option<Vec<(u64, UnwindRule)>> {
    let mut rows = vec![(0, frame(0, Saved::Not, Saved::Not))];
    let mut is_saved = false;
    for at in (0..code.len()).step_by(4) {
        let behind = at as u64 + 4;
        match u32_in(code, at)? {
            SAVE if !is_saved => {
                is_saved = true;
                let pair = (Saved::AtCfa(-16), Saved::AtCfa(-8));
                rows.push((behind, frame(16, pair.0, pair.1)));
            }
            RESTORE if is_saved => {
                is_saved = false;
                rows.push((behind, frame(0, Saved::Not, Saved::Not)));
            }
            SET if is_saved => {}
            hint if is_hint(hint) => {}
            call if is_saved && is_call(call) => {}
            RETURN if !is_saved && behind == code.len() as u64 => return Some(rows),
            _ => return None,
        }
    }
    None
}

fn frame(offset: i32, x29: Saved, x30: Saved) -> UnwindRule {
    UnwindRule::Linked(Linked::from_sp(offset, x29, x30))
}

/// Whether it is `nop`, `bti`, `paciasp`, `autiasp` or similar.
fn is_hint(instruction: u32) -> bool {
    instruction & 0xffff_f01f == 0xd503_201f
}

/// Whether it is a `bl`.
fn is_call(instruction: u32) -> bool {
    instruction >> 26 == 0b100101
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(code: &[u32]) -> Vec<u8> {
        code.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    const PACIASP: u32 = 0xd503_233f;
    const AUTIASP: u32 = 0xd503_23bf;

    #[test]
    fn the_forms_that_start_files_have() {
        let leaf = frame(0, Saved::Not, Saved::Not);
        let saved = frame(16, Saved::AtCfa(-16), Saved::AtCfa(-8));
        let init = [PACIASP, SAVE, SET, 0x9400_0123, RESTORE, AUTIASP, RETURN];
        let expected = vec![(0, leaf), (8, saved), (20, leaf)];
        assert_eq!(rows(&bytes(&init)), Some(expected));
        let fini = [SAVE, SET, RESTORE, RETURN];
        let expected = vec![(0, leaf), (4, saved), (12, leaf)];
        assert_eq!(rows(&bytes(&fini)), Some(expected));
    }

    #[test]
    fn others_are_left_alone() {
        assert_eq!(rows(&[]), None);
        assert_eq!(rows(&bytes(&[SAVE, RETURN])), None);
        assert_eq!(rows(&bytes(&[SAVE, RESTORE, RETURN, RETURN])), None);
        assert_eq!(rows(&bytes(&[0x9400_0123, RETURN])), None);
        assert_eq!(rows(&bytes(&[SAVE, SET, RESTORE])), None);
        // sub sp, sp, #16
        assert_eq!(rows(&bytes(&[SAVE, 0xd100_43ff, RESTORE, RETURN])), None);
    }

    #[test]
    fn how_programs_begin() {
        assert!(begins_a_program(&bytes(&[0xd280_001d, 0xd280_001e])));
        // bti c
        assert!(begins_a_program(&bytes(&[0xd503_245f, 0xd280_001d])));
        assert!(!begins_a_program(&bytes(&[SAVE, SET])));
        assert!(!begins_a_program(&bytes(&[0xd503_245f])));
        assert!(!begins_a_program(&[]));
    }
}
