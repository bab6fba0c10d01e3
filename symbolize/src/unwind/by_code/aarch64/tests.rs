use super::*;
use crate::unwind::rule::{Linked, Saved};

const START: u64 = 0x40_0000;

const PUSH: u32 = 0xa9be_53f3; // stp x19, x20, [sp, #-32]!
const SAVE_LINK: u32 = 0xf900_0bfe; // str x30, [sp, #16]
const LOAD_LINK: u32 = 0xf940_0bfe; // ldr x30, [sp, #16]
const POP: u32 = 0xa8c2_53f3; // ldp x19, x20, [sp], #32
const PUSH_PAIR: u32 = 0xa9bd_7bfd; // stp x29, x30, [sp, #-48]!
const SET_X29: u32 = 0x9100_03fd; // mov x29, sp
const POP_PAIR: u32 = 0xa8c3_7bfd; // ldp x29, x30, [sp], #48
const MOVE: u32 = 0xaa01_03e0; // mov x0, x1
const NOP: u32 = 0xd503_201f;
const RETURN: u32 = 0xd65f_03c0;
const RETURN_SIGNED: u32 = 0xd65f_0bff; // retaa
const BY_TABLE: u32 = 0xd61f_0060; // br x3
const CALL_BY_REGISTER: u32 = 0xd63f_0040; // blr x2

/// `bl` to the instruction that is this number of instructions further on.
fn call(distance: i32) -> u32 {
    0x9400_0000 | distance as u32 & 0x03ff_ffff
}

/// `b` to the instruction that is this number of instructions further on.
fn branch(distance: i32) -> u32 {
    0x1400_0000 | distance as u32 & 0x03ff_ffff
}

/// `cbz x0` to the instruction that is this number of instructions further on.
fn branch_if(distance: i32) -> u32 {
    0xb400_0000 | (distance as u32 & 0x7ffff) << 5
}

fn bytes(code: &[u32]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn frame(offset: i32, x29: Option<i32>, x30: Option<i32>) -> UnwindRule {
    let place = |at: Option<i32>| at.map_or(Saved::Not, Saved::AtCfa);
    UnwindRule::Linked(Linked::from_sp(offset, place(x29), place(x30)))
}

/// What is expected from an instruction on, by its number.
#[track_caller]
fn check(code: &[u32], expected: &[(u64, UnwindRule)]) {
    let code = bytes(code);
    let called = called(&code, START);
    let found = rows(&code, START, called.into_iter());
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, rule)| (START + at * BYTES, *rule))
        .collect();
    assert_eq!(found, expected);
}

fn leaf() -> UnwindRule {
    frame(0, None, None)
}

#[test]
fn a_function_that_keeps_no_frame_record() {
    let code = [
        PUSH,
        SAVE_LINK,
        MOVE,
        CALL_BY_REGISTER,
        LOAD_LINK,
        POP,
        RETURN,
    ];
    let expected = [
        (0, leaf()),
        (1, frame(32, None, None)),
        (2, frame(32, None, Some(-16))),
        (5, frame(32, None, None)),
        (6, leaf()),
    ];
    check(&code, &expected);
}

#[test]
fn a_function_that_keeps_one_and_returns_in_its_middle() {
    let code = [
        PUSH_PAIR,
        SET_X29,
        branch_if(3),
        POP_PAIR,
        RETURN_SIGNED,
        MOVE,
        branch(-3),
    ];
    let pair = frame(48, Some(-48), Some(-40));
    let expected = [(0, leaf()), (1, pair), (4, leaf()), (5, pair)];
    check(&code, &expected);
}

#[test]
fn the_stack_pointer_moves_by_numbers_large_and_small() {
    let code = [
        0xd101_03ff, // sub sp, sp, #64
        0xa903_7bfd, // stp x29, x30, [sp, #48]
        0x9100_c3fd, // add x29, sp, #48
        0xcb21_63ff, // sub sp, sp, x1
        MOVE,
        0xd100_c3bf, // sub sp, x29, #48
        0xa943_7bfd, // ldp x29, x30, [sp, #48]
        0x9101_03ff, // add sp, sp, #64
        0xd282_720c, // mov x12, #5008
        0xcb2c_63ff, // sub sp, sp, x12
        0x8b2c_63ff, // add sp, sp, x12
        RETURN,
    ];
    let pair = (Saved::AtCfa(-16), Saved::AtCfa(-8));
    let by_x29 = UnwindRule::Linked(Linked {
        base: 29,
        offset: 16,
        x29: pair.0,
        x30: pair.1,
    });
    let expected = [
        (0, leaf()),
        (1, frame(64, None, None)),
        (2, frame(64, Some(-16), Some(-8))),
        (4, by_x29),
        (6, frame(64, Some(-16), Some(-8))),
        (7, frame(64, None, None)),
        (8, leaf()),
        (10, frame(5008, None, None)),
        (11, leaf()),
    ];
    check(&code, &expected);
}

#[test]
fn behind_a_call_the_link_register_is_not_the_callers() {
    let expected = [(0, leaf()), (1, UnwindRule::Hole), (2, leaf())];
    check(&[MOVE, CALL_BY_REGISTER, MOVE], &expected);
}

#[test]
fn a_function_begins_behind_a_call_that_does_not_return() {
    let saved = frame(32, None, Some(-16));
    let first = [(0, leaf()), (1, frame(32, None, None)), (2, saved)];
    // By how it begins.
    let code = [PUSH, SAVE_LINK, CALL_BY_REGISTER, NOP, PUSH, RETURN];
    let rest = [(4, leaf()), (5, frame(32, None, None))];
    check(&code, &[&first[..], &rest].concat());
    // By a call that leads there.
    let code = [PUSH, SAVE_LINK, call(1), MOVE, MOVE, RETURN];
    check(&code, &[&first[..], &[(3, leaf())]].concat());
    // It goes on, as far as can be told.
    let code = [PUSH, SAVE_LINK, CALL_BY_REGISTER, MOVE, MOVE, RETURN];
    check(&code, &first);
}

#[test]
fn what_a_table_leads_to_is_of_the_function_before() {
    let saved = frame(32, None, Some(-16));
    let begins = [(0, leaf()), (1, frame(32, None, None)), (2, saved)];
    let code = [
        PUSH,
        SAVE_LINK,
        BY_TABLE,
        MOVE,
        branch(-2),
        MOVE,
        branch(-4),
        PUSH,
        RETURN,
    ];
    let rest = [(7, leaf()), (8, frame(32, None, None))];
    check(&code, &[&begins[..], &rest].concat());
    // Without such a jump it is another function.
    let code = [PUSH, SAVE_LINK, branch(-1), MOVE, RETURN];
    check(&code, &[&begins[..], &[(3, leaf())]].concat());
}

#[test]
fn padding_and_the_end_of_the_code_are_no_functions() {
    check(
        &[RETURN, NOP, 0, NOP],
        &[(0, leaf()), (1, UnwindRule::Hole)],
    );
    assert!(rows(&[0xc0, 0x03], START, std::iter::empty()).is_empty());
    check(&[branch(1000), branch_if(-1000)], &[(0, leaf())]);
}

#[test]
fn other_stores_and_loads_by_the_stack_pointer_move_it_alone() {
    let code = [
        0x6dbf_27e8, // stp d8, d9, [sp, #-16]!
        0x3d80_0be0, // str q0, [sp, #32]
        0xf81f_0ffe, // str x30, [sp, #-16]!
        0x2a02_03e1, // mov w1, w2
        0xf841_07fe, // ldr x30, [sp], #16
        0x927c_ed3f, // and sp, x9, #-16
        RETURN,
    ];
    let expected = [
        (0, leaf()),
        (1, frame(16, None, None)),
        (3, frame(32, None, Some(-32))),
        (5, frame(16, None, None)),
        (6, UnwindRule::Hole),
    ];
    check(&code, &expected);
}

#[test]
fn random_words_do_no_harm() {
    let mut random = test_support::Random::new(7);
    for _ in 0..200 {
        let words: Vec<u32> = (0..256)
            .map(|_| match random.below(4) {
                0 => random.number() as u32,
                1 => branch(random.below(256) as i32 - 128),
                2 => branch_if(random.below(256) as i32 - 128),
                _ => [PUSH, POP, PUSH_PAIR, POP_PAIR, BY_TABLE, RETURN][random.index(6)],
            })
            .collect();
        let code = bytes(&words);
        let called = called(&code, START);
        let rows = rows(&code, START, called.into_iter());
        assert!(rows.is_sorted_by_key(|(at, _)| *at));
    }
}
