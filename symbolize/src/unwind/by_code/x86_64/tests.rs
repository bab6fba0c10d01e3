use super::*;
use crate::unwind::rule::{RbpRule, Register as Base};
use proptest::prelude::*;

const START: u64 = 0x40_0000;

const PUSH_RBP: &[u8] = &[0x55];
const PUSH_RBX: &[u8] = &[0x53];
const POP_RBX: &[u8] = &[0x5b];
const POP_RBP: &[u8] = &[0x5d];
const SUB_24: &[u8] = &[0x48, 0x83, 0xec, 0x18]; // sub $24, %rsp
const ADD_24: &[u8] = &[0x48, 0x83, 0xc4, 0x18]; // add $24, %rsp
const SET_RBP: &[u8] = &[0x48, 0x89, 0xe5]; // mov %rsp, %rbp
const ALIGN: &[u8] = &[0x48, 0x83, 0xe4, 0xe0]; // and $-32, %rsp
const LEAVE: &[u8] = &[0xc9];
const RET: &[u8] = &[0xc3];
const MOVE: &[u8] = &[0x89, 0xf0]; // mov %esi, %eax
const USE_RBP: &[u8] = &[0x89, 0xfd]; // mov %edi, %ebp
const CALL_RAX: &[u8] = &[0xff, 0xd0];
const JUMP_RAX: &[u8] = &[0xff, 0xe0];
const JUMP_OVER_2: &[u8] = &[0x74, 0x02]; // je
const NOP_3: &[u8] = &[0x0f, 0x1f, 0x00];

fn by(base: Base, offset: i32, rbp: Option<i32>) -> UnwindRule {
    UnwindRule::frame(base, offset, rbp.map_or(RbpRule::Same, RbpRule::AtCfa))
}

fn by_rsp(offset: i32, rbp: Option<i32>) -> UnwindRule {
    by(Base::Rsp, offset, rbp)
}

/// Checks the rules from an instruction on, by its number.
#[track_caller]
fn check(code: &[&[u8]], expected: &[(usize, UnwindRule)]) {
    let bytes = code.concat();
    let found = rows(&bytes, START, called(&bytes, START).into_iter(), None);
    let place = |number: usize| START + code[..number].concat().len() as u64;
    let expected: Vec<_> = expected
        .iter()
        .map(|(number, rule)| (place(*number), *rule))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_function_without_a_frame_pointer() {
    let code = [
        PUSH_RBP, PUSH_RBX, SUB_24, USE_RBP, CALL_RAX, ADD_24, POP_RBX, POP_RBP, RET,
    ];
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, Some(-16))),
        (2, by_rsp(24, Some(-16))),
        (3, by_rsp(48, Some(-16))),
        (6, by_rsp(24, Some(-16))),
        (7, by_rsp(16, Some(-16))),
        (8, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn a_function_that_aligns_its_stack_has_a_frame_pointer() {
    let code = [PUSH_RBP, SET_RBP, ALIGN, SUB_24, CALL_RAX, LEAVE, RET];
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, Some(-16))),
        (3, by(Base::Rbp, 16, Some(-16))),
        (6, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn a_function_that_returns_in_its_middle() {
    let code = [PUSH_RBX, JUMP_OVER_2, POP_RBX, RET, MOVE, POP_RBX, RET];
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, None)),
        (3, by_rsp(8, None)),
        (4, by_rsp(16, None)),
        (6, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn a_function_begins_behind_a_call_that_does_not_return_and_a_loop_does_not() {
    let nop_8: &[u8] = &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    let before = [PUSH_RBX, SUB_24, CALL_RAX, nop_8, &[0x90]];
    // Now the address is a multiple of 16.
    assert_eq!(before.concat().len(), 16);
    let function = [&before[..], &[PUSH_RBX, POP_RBX, RET]].concat();
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, None)),
        (2, by_rsp(40, None)),
        (5, by_rsp(8, None)),
        (6, by_rsp(16, None)),
        (7, by_rsp(8, None)),
    ];
    check(&function, &expected);
    let code = [&before[..], &[MOVE, ADD_24, POP_RBX, RET]].concat();
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, None)),
        (2, by_rsp(40, None)),
        (7, by_rsp(16, None)),
        (8, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn registers_are_stored_and_loaded_by_moves_too() {
    let code: [&[u8]; 6] = [
        SUB_24,
        &[0x48, 0x89, 0x6c, 0x24, 0x10], // mov %rbp, 16(%rsp)
        USE_RBP,
        &[0x48, 0x8b, 0x6c, 0x24, 0x10], // mov 16(%rsp), %rbp
        ADD_24,
        RET,
    ];
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(32, None)),
        (2, by_rsp(32, Some(-16))),
        (4, by_rsp(32, None)),
        (5, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn what_a_table_leads_to_is_of_the_function_before() {
    let code = [
        PUSH_RBX, JUMP_RAX, MOVE, POP_RBX, RET, PUSH_RBX, POP_RBX, RET,
    ];
    let expected = [
        (0, by_rsp(8, None)),
        (1, by_rsp(16, None)),
        (4, by_rsp(8, None)),
        (6, by_rsp(16, None)),
        (7, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn what_is_seldom_executed_may_come_before_its_function() {
    // The function begins at a multiple of 16, and jumps back.
    let code: [&[u8]; 7] = [
        NOP_3,
        MOVE,
        POP_RBX,
        RET,
        &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], // nop
        PUSH_RBX,
        &[0xeb, 0xf0], // jmp to the second instruction
    ];
    let expected = [
        (0, UnwindRule::Hole),
        (1, by_rsp(16, None)),
        (3, by_rsp(8, None)),
        (4, UnwindRule::Hole),
        (5, by_rsp(8, None)),
        (6, by_rsp(16, None)),
    ];
    check(&code, &expected);
}

#[test]
fn a_new_thread_and_a_program_have_no_caller() {
    let clone: [&[u8]; 6] = [
        &[0x0f, 0x05],       // syscall
        &[0x85, 0xc0],       // test %eax, %eax
        &[0x75, 0x05],       // jne to the last instruction
        &[0x31, 0xed],       // xor %ebp, %ebp
        &[0x41, 0xff, 0xd1], // call *%r9
        RET,
    ];
    let expected = [
        (0, by_rsp(8, None)),
        (4, UnwindRule::EndOfStack),
        (5, by_rsp(8, None)),
    ];
    check(&clone, &expected);
    let code = [CALL_RAX, &[0xf4]].concat(); // hlt
    let found = rows(&code, START, [].into_iter(), Some(START));
    assert_eq!(found, [(START, UnwindRule::EndOfStack)]);
    // A compiler uses rbp as any other register, after saving it.
    let code: [&[u8]; 5] = [&[0x0f, 0x05], PUSH_RBP, &[0x31, 0xed], POP_RBP, RET];
    let expected = [
        (0, by_rsp(8, None)),
        (2, by_rsp(16, Some(-16))),
        (4, by_rsp(8, None)),
    ];
    check(&code, &expected);
}

#[test]
fn signal_handlers_return_to_a_function_of_its_own() {
    for code in SIGNAL_RETURNS {
        check(&[code], &[(0, UnwindRule::Signal)]);
        check(&[&[0x90], code], &[(0, UnwindRule::Signal)]);
        let before = [(0, by_rsp(8, None)), (1, UnwindRule::Hole)];
        let behind_padding = [before[0], before[1], (2, UnwindRule::Signal)];
        check(&[RET, &[0x90], &[0x90], code], &behind_padding);
    }
}

#[test]
fn padding_is_no_function() {
    check(&[NOP_3, &[0xcc], &[0, 0]], &[(0, UnwindRule::Hole)]);
    assert_eq!(rows(&[], START, [].into_iter(), None), []);
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(
        code in prop::collection::vec(any::<u8>(), 0..400),
        begins in prop::collection::vec(0u64..500, 0..8)
    ) {
        let begins = begins.iter().map(|at| START + at);
        let found = rows(&code, START, begins, Some(START + 3));
        prop_assert!(found.is_sorted_by_key(|(at, _)| *at));
        let end = START + code.len() as u64;
        prop_assert!(found.iter().all(|(at, _)| (START..end).contains(at)));
    }
}
