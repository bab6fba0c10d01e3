//! Start code of x86-64.

use crate::unwind::rule::{RbpRule, Register, UnwindRule};

const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// Instructions that reserve stack space and free it: as in glibc, and in musl.
const FORMS: [(&[u8], &[u8]); 2] = [
    // sub $8, %rsp; add $8, %rsp
    (&[0x48, 0x83, 0xec, 0x08], &[0x48, 0x83, 0xc4, 0x08]),
    // push %rax; pop %rax
    (&[0x50], &[0x58]),
];

const RET: u8 = 0xc3;

/// Beginnings of programs that compilers do not write; the first instruction has no caller. The
/// entry point of a library is just the first byte of its code.
const BEGINNINGS: [&[u8]; 3] = [
    // mov %rsp, %rdi: the dynamic linker of glibc
    &[0x48, 0x89, 0xe7],
    // xor %ebp, %ebp, as the ABI asks for, and musl's xor %rbp, %rbp
    &[0x31, 0xed],
    &[0x48, 0x31, 0xed],
];

/// Whether a program begins with this code.
pub fn begins_a_program(code: &[u8]) -> bool {
    let code = code.strip_prefix(ENDBR64).unwrap_or(code);
    BEGINNINGS.iter().any(|begin| code.starts_with(begin))
}

/// Returns the rules of `_init` or `_fini`, by distance from its start; `None` if it has another
/// form.
pub fn rows(code: &[u8]) -> Option<Vec<(u64, UnwindRule)>> {
    let (inside, behind) = room_on_the_stack(code)?;
    let frame = |offset| UnwindRule::frame(Register::Rsp, offset, RbpRule::Same);
    Some(vec![
        (0, frame(8)),
        (inside as u64, frame(16)),
        (behind as u64, frame(8)),
    ])
}

/// Returns the part in which one more word than the return address is on the stack.
fn room_on_the_stack(code: &[u8]) -> Option<(usize, usize)> {
    let begin = code.strip_prefix(ENDBR64).unwrap_or(code);
    let endbr = code.len() - begin.len();
    FORMS.iter().find_map(|(take, give)| {
        let body = begin
            .strip_prefix(*take)?
            .strip_suffix(&[RET])?
            .strip_suffix(*give)?;
        (body.is_empty() || is_call_of_gmon_start(body)).then(|| {
            let inside = endbr + take.len();
            (inside, inside + body.len() + give.len())
        })
    })
}

/// Whether it is `mov __gmon_start__@GOT(%rip), %rax; test %rax, %rax; je over; call *%rax`.
fn is_call_of_gmon_start(body: &[u8]) -> bool {
    let Some(rest) = body.strip_prefix(&[0x48, 0x8b, 0x05]) else {
        return false;
    };
    rest.get(4..) == Some(&[0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: &[u8] = &[
        0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, 0xe5, 0x5f, 0x08, 0x00, 0x48, 0x85, 0xc0, 0x74,
        0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];

    #[test]
    fn the_forms_that_start_files_have() {
        assert_eq!(room_on_the_stack(INIT), Some((4, 22)));
        let fini = [&INIT[..4], &INIT[18..]].concat();
        assert_eq!(room_on_the_stack(&fini), Some((4, 8)));
        let protected = [ENDBR64, INIT].concat();
        assert_eq!(room_on_the_stack(&protected), Some((8, 26)));
        assert_eq!(room_on_the_stack(&[0x50, 0x58, 0xc3]), Some((1, 2)));
    }

    #[test]
    fn how_programs_begin() {
        assert!(begins_a_program(&[0x48, 0x89, 0xe7, 0xe8]));
        assert!(begins_a_program(&[ENDBR64, &[0x31, 0xed, 0x49]].concat()));
        // lea 0x..(%rip), %rdi: libraries do that in `deregister_tm_clones`.
        assert!(!begins_a_program(&[0x48, 0x8d, 0x3d, 0x01]));
        assert!(!begins_a_program(ENDBR64));
    }

    #[test]
    fn others_are_left_alone() {
        for damaged in [4, 17] {
            let mut other = INIT.to_vec();
            other[damaged] = 0x90;
            assert_eq!(room_on_the_stack(&other), None, "{damaged}");
        }
        assert_eq!(room_on_the_stack(&INIT[..22]), None);
        assert_eq!(room_on_the_stack(&[]), None);
        assert_eq!(room_on_the_stack(&[0x50, 0xc3]), None);
    }
}
