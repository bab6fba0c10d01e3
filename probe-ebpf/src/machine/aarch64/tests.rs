use super::*;
use crate::registers::{Registers, SCRATCH_REGISTERS};
use crate::walk::frame;
use crate::world::tests::Stack;
use std::vec;
use std::vec::Vec;

/// The signature that addresses have in these tests.
const SIGNATURE: u64 = 0x5a << 48;

fn at(sp: u64, bp: u64) -> Walk {
    let registers = Registers {
        ip: 0x40_1008,
        sp,
        bp,
    };
    Walk {
        registers,
        is_leaf: 1,
        is_exact: 1,
        ..Walk::default()
    }
}

/// Like [`at`], for a frame that has made a call.
fn behind_a_call(sp: u64, bp: u64) -> Walk {
    Walk {
        is_leaf: 0,
        is_exact: 0,
        ..at(sp, bp)
    }
}

fn with_link(link: u64, walk: Walk) -> Walk {
    let mut scratch = walk.scratch;
    scratch[X30] = link;
    Walk { scratch, ..walk }
}

fn check(
    rule: Rule,
    mut walk: Walk,
    mut stack: Stack<'_>,
    expected: Result<(u64, u64, u64), u32>,
) -> Walk {
    let before = walk.registers;
    let status = frame::<Aarch64, _>(Some(rule), &mut walk, &mut stack);
    match expected {
        Ok((ip, sp, bp)) => {
            assert_eq!(status, status::CALLER);
            assert_eq!(walk.registers, Registers { ip, sp, bp });
        }
        Err(expected) => {
            assert_eq!(status, expected);
            assert_eq!(walk.registers, before, "a failed step changes nothing");
        }
    }
    walk
}

#[test]
fn a_leaf_returns_by_its_link_register() {
    // Nothing is on the stack, and the caller's stack pointer is the same.
    let rule = Rule::new(kind::SP, 0, saved::NOTHING, 0);
    let walk = with_link(0x40_2000 | SIGNATURE, at(0x7000, 5));
    let walk = check(rule, walk, Stack::new(&[]), Ok((0x40_2000, 0x7000, 5)));
    // This frame has made a call: x30 is not its own.
    check(rule, walk, Stack::new(&[]), Err(status::STUCK));
    // A frame with room for locals.
    let rule = Rule::new(kind::SP, 4, saved::NOTHING, 0);
    let walk = with_link(0x40_2000, at(0x7000, 5));
    let walk = check(rule, walk, Stack::new(&[]), Ok((0x40_2000, 0x7020, 5)));
    check(rule, walk, Stack::new(&[]), Err(status::UNSUPPORTED));
    // A function that no other called.
    let walk = with_link(0, at(0x7000, 5));
    check(rule, walk, Stack::new(&[]), Err(status::END));
}

#[test]
fn a_pair_at_the_bottom_of_the_frame() {
    // stp x29, x30, [sp, #-32]!
    let words = [0x7040, 0x40_2000 | SIGNATURE, 3, 4, 5];
    let rule = Rule::new(kind::SP, 4, saved::PAIR, 4);
    for walk in [at(0x7000, 0x7000), behind_a_call(0x7000, 0x7000)] {
        check(
            rule,
            walk,
            Stack::new(&words),
            Ok((0x40_2000, 0x7020, 0x7040)),
        );
    }
    // mov x29, sp; sub sp, sp, #16
    let words = [1, 2, 0x7050, 0x40_2000, 3, 4];
    let rule = Rule::new(kind::BP, 4, saved::PAIR, 4);
    check(
        rule,
        behind_a_call(0x7000, 0x7010),
        Stack::new(&words),
        Ok((0x40_2000, 0x7030, 0x7050)),
    );
}

#[test]
fn a_link_register_saved_alone() {
    let words = [1, 0x40_2000 | SIGNATURE, 3, 4];
    let rule = Rule::new(kind::SP, 3, saved::LINK, 2);
    check(
        rule,
        behind_a_call(0x7000, 5),
        Stack::new(&words),
        Ok((0x40_2000, 0x7018, 5)),
    );
}

#[test]
fn a_frame_is_above_its_callees() {
    let words = [0x7040, 0x40_2000];
    for (rule, walk) in [
        (Rule::new(kind::SP, 0, saved::PAIR, 0), at(0x7000, 5)),
        (Rule::new(kind::SP, 0, saved::LINK, 0), at(0x7000, 5)),
        (Rule::new(kind::BP, 1, saved::PAIR, 2), at(0x7010, 0x7000)),
        (
            Rule::new(kind::BP, 1, saved::NOTHING, 0),
            at(0x7010, 0x7000),
        ),
    ] {
        check(rule, walk, Stack::new(&words), Err(status::STUCK));
    }
}

fn extended(frame: Frame, words: &[u64]) -> (Rule, Stack<'_>) {
    let stack = Stack {
        extended: frame.pack(),
        ..Stack::new(words)
    };
    (Rule::new(kind::EXTENDED, 0, 0, 0), stack)
}

#[test]
fn registers_saved_apart() {
    let words = [0x40_2000 | SIGNATURE, 1, 0x7777, 2];
    let apart = Frame {
        base: base::SP,
        offset: 32,
        x29: Some(-16),
        x30: Some(-32),
    };
    let (rule, stack) = extended(apart, &words);
    let called = behind_a_call(0x7000, 5);
    check(rule, called, stack, Ok((0x40_2000, 0x7020, 0x7777)));
    // Only the frame pointer is saved; the return address is still in its register.
    let (rule, stack) = extended(Frame { x30: None, ..apart }, &words);
    let walk = with_link(0x40_3000, at(0x7000, 5));
    let walk = check(rule, walk, stack, Ok((0x40_3000, 0x7020, 0x7777)));
    let (rule, stack) = extended(Frame { x30: None, ..apart }, &words);
    let called = Walk {
        registers: called.registers,
        ..walk
    };
    check(rule, called, stack, Err(status::UNSUPPORTED));
}

#[test]
fn a_scratch_register_is_known_in_the_leaf_only() {
    let words = [0, 0x7777, 0x40_2000];
    let by_x16 = Frame {
        base: base::X16,
        offset: 8,
        x29: Some(-16),
        x30: Some(-8),
    };
    let mut walk = at(0x7000, 5);
    walk.scratch[scratch(base::X16)] = 0x7010;
    let (rule, stack) = extended(by_x16, &words);
    check(rule, walk, stack, Ok((0x40_2000, 0x7018, 0x7777)));
    walk.is_leaf = 0;
    let (rule, stack) = extended(by_x16, &words);
    check(rule, walk, stack, Err(status::UNSUPPORTED));
}

#[test]
fn a_signal_frame_restores_everything_and_its_pc_is_exact() {
    let mut words = vec![0u64; 80];
    words[68..72].copy_from_slice(&[0x7300, 0x40_6000 | SIGNATURE, 0x9000, 0x40_5000]);
    let rule = Rule::special(special::SIGNAL);
    let called = behind_a_call(0x7000, 5);
    let stack = Stack::new(&words);
    let walk = check(rule, called, stack, Ok((0x40_5000, 0x9000, 0x7300)));
    assert_eq!(walk.is_exact, 1);
    // The signal interrupted a leaf function, whose link register was saved with the others.
    let leaf = Rule::new(kind::SP, 0, saved::NOTHING, 0);
    let walk = check(leaf, walk, Stack::new(&[]), Ok((0x40_6000, 0x9000, 0x7300)));
    assert_eq!(walk.is_exact, 0);
}

#[test]
fn behind_a_frame_pointer_the_record_takes_the_stack_pointers_place() {
    let no_table = Rule::special(special::NO_TABLE);
    // Records at 0x7000 and 0x7020; the second's frame begins at 0x7018 and ends at 0x7048.
    let words = [
        0x7020,
        0x40_1800,
        9,
        9,
        0x7080,
        0x40_2000 | SIGNATURE,
        1,
        2,
        3,
    ];
    let walk = check(
        no_table,
        at(0x7000, 0x7000),
        Stack::new(&words),
        Ok((0x40_1800, 0x7010, 0x7020)),
    );
    assert_eq!(walk.links, 1);
    let pair = Rule::new(kind::SP, 6, saved::PAIR, 5);
    let next = check(
        pair,
        walk,
        Stack::new(&words),
        Ok((0x40_2000, 0x7048, 0x7080)),
    );
    assert_eq!(next.links, 0);
    // Its own frame pointer leads to the record as well.
    let by_record = Rule::new(kind::BP, 5, saved::PAIR, 5);
    check(
        by_record,
        walk,
        Stack::new(&words),
        Ok((0x40_2000, 0x7048, 0x7080)),
    );
    // Any other rule that counts from the stack pointer cannot be applied.
    let alone = Rule::new(kind::SP, 6, saved::LINK, 5);
    check(alone, walk, Stack::new(&words), Err(status::IMPLAUSIBLE));
    let signal = Rule::special(special::SIGNAL);
    check(signal, walk, Stack::new(&words), Err(status::IMPLAUSIBLE));
    let apart = Frame {
        base: base::SP,
        offset: 32,
        x29: Some(-16),
        x30: Some(-32),
    };
    let (rule, stack) = extended(apart, &words);
    check(rule, walk, stack, Err(status::IMPLAUSIBLE));
}

#[test]
fn ends_and_failures() {
    let end = Rule::special(special::END);
    check(end, at(0x7000, 5), Stack::new(&[]), Err(status::END));
    let pair = Rule::new(kind::SP, 2, saved::PAIR, 2);
    let nothing = Stack::new(&[]);
    check(pair, at(0x7000, 5), nothing, Err(status::READ_FAULT));
    // Nothing returns to address 0, signed or not.
    check(
        pair,
        at(0x7000, 5),
        Stack::new(&[0, SIGNATURE]),
        Err(status::END),
    );
    for unknown in [special::UNSUPPORTED, special::PLT + 11] {
        let rule = Rule::special(unknown);
        check(
            rule,
            at(0x7000, 5),
            Stack::new(&[1]),
            Err(status::UNSUPPORTED),
        );
    }
    let hole = Rule::special(special::FRAME_POINTER);
    check(
        hole,
        behind_a_call(0x7000, 0),
        Stack::new(&[]),
        Err(status::END),
    );
    check(hole, at(0x7000, 0), Stack::new(&[]), Err(status::CHAIN_END));
}

#[test]
fn a_frame_record_on_another_stack() {
    // The caller's stack is below ours; how far its frame reaches is not known.
    let words = [0x7040, 0x40_2000 | SIGNATURE];
    let rule = Rule::special(special::STACK_SWITCH);
    let called = behind_a_call(0x9000, 0x7000);
    let walk = check(
        rule,
        called,
        Stack::new(&words),
        Ok((0x40_2000, 0x7010, 0x7040)),
    );
    assert_eq!(walk.links, 1);
    let first = behind_a_call(0x9000, 0);
    check(rule, first, Stack::new(&words), Err(status::END));
    let elsewhere = behind_a_call(0x9000, 0xa000);
    check(rule, elsewhere, Stack::new(&words), Err(status::SWITCHED));
}

#[test]
fn the_short_cut_is_the_step() {
    let words: Vec<u64> = (0..64).map(|i| 0x7000 + 8 * i).collect();
    for offset in [2, 4, 9] {
        for (saved, slot) in [(saved::PAIR, 2), (saved::PAIR, offset), (saved::LINK, 1)] {
            for kind in [kind::SP, kind::BP] {
                let rule = Rule::new(kind, offset, saved, slot);
                assert!(Aarch64::is_plain(rule.0, 0));
                let mut walk = behind_a_call(0x7000, 0x7020);
                let from = if kind == kind::SP { 0x7000 } else { 0x7020 };
                let cfa = from + u64::from(offset) * 8;
                let word = |below: u64| words[((cfa - below - 0x7000) / 8) as usize];
                let expected = Registers {
                    ip: word(Aarch64::return_below(rule.0)),
                    sp: cfa,
                    bp: match Aarch64::saves_bp(rule.0) {
                        true => word(Aarch64::bp_below(rule.0)),
                        false => 0x7020,
                    },
                };
                let step = frame::<Aarch64, _>(Some(rule), &mut walk, &mut Stack::new(&words));
                assert_eq!((step, walk.registers), (status::CALLER, expected));
            }
        }
    }
    let by_sp = Rule::new(kind::SP, 4, saved::PAIR, 4);
    assert!(!Aarch64::is_plain(by_sp.0, 1));
    assert!(!Aarch64::is_plain(
        Rule::new(kind::SP, 4, saved::NOTHING, 0).0,
        0
    ));
    assert!(!Aarch64::is_plain(Rule::special(special::END).0, 0));
}

#[test]
fn random_rules_on_random_stacks_do_no_harm() {
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..crate::rounds(20_000) {
        let words: Vec<u64> = (0..16).map(|_| Stack::BASE + random() % 128).collect();
        let mut walk = at(Stack::BASE + random() % 128, Stack::BASE + random() % 128);
        walk.scratch = [Stack::BASE + random() % 128; SCRATCH_REGISTERS];
        let frame_rule = Frame {
            base: random() as u8 % 20,
            offset: random() as i32,
            x29: (random() & 1 == 0).then_some(random() as i32 % 128),
            x30: (random() & 1 == 0).then_some(random() as i32 % 128),
        };
        let mut stack = Stack {
            extended: frame_rule.pack(),
            ..Stack::new(&words)
        };
        for _ in 0..64 {
            let rule = Rule(random() as u32);
            if frame::<Aarch64, _>(Some(rule), &mut walk, &mut stack) != status::CALLER {
                break;
            }
        }
    }
}

#[test]
fn from_the_runtime_to_its_goroutine() {
    use crate::rule::{Extended, base as any_base};
    fn special(extended: Extended, words: &[u64]) -> (Rule, Stack<'_>) {
        let stack = Stack {
            extended,
            ..Stack::new(words)
        };
        (Rule::new(kind::EXTENDED, 0, 0, 0), stack)
    }
    // Our `g` at 0x7000, its thread at 0x7040, the goroutine at 0x7060, its stack from 0x7100 on.
    let mut words = [0u64; 40];
    words[6] = 0x7040;
    (words[8], words[9]) = (0x7000, 0x7060);
    (words[12], words[13]) = (0x7100, 0x7140);
    (words[19], words[20]) = (0x7110, 0x40_5000);
    // The return address, and x29, of a function without a frame.
    (words[24], words[25]) = (0x40_6000, 0x7777);
    // The frame of systemstack.
    (words[33], words[34]) = (0x7130, 0x40_2000 | SIGNATURE);
    let goroutine = Extended {
        base: any_base::GOROUTINE,
        offset: 8,
        rbp_offset: 0x68,
        ..Extended::default()
    };
    let mut walk = behind_a_call(0x9000, 5);
    walk.scratch[X28] = 0x7000;
    let called = Extended {
        deref: 1,
        ..goroutine
    };
    let (rule, stack) = special(called, &words);
    check(rule, walk, stack, Ok((0x40_2000, 0x7120, 0x7130)));
    let (rule, stack) = special(goroutine, &words);
    let at_entry = check(rule, walk, stack, Ok((0x40_5000, 0x7110, 0x7777)));
    assert_eq!((at_entry.scratch[X30], at_entry.is_exact), (0x40_6000, 1));
    // The thread has let go of its goroutine.
    let mut without = words;
    without[9] = 0;
    let (rule, stack) = special(called, &without);
    check(rule, walk, stack, Err(status::END));
    // Its stack pointer is not saved.
    without = words;
    without[19] = 0;
    let (rule, stack) = special(called, &without);
    check(rule, walk, stack, Err(status::SWITCHED));
    // x28 holds something else.
    walk.scratch[X28] = 0x7008;
    let (rule, stack) = special(called, &words);
    check(rule, walk, stack, Err(status::SWITCHED));
}

#[test]
fn what_go_saves_below_the_stack_pointer_is_told_without_reading_it() {
    let Walk { registers, .. } = at(0x7000, 0x6ff8);
    // A frame of 32 bytes, with x29 one word below it.
    let of_go = Rule::new(kind::SP, 4, saved::PAIR, 5);
    assert_eq!(Aarch64::saved_below_sp(of_go, &registers), Some(0x7018));
    for other in [
        Rule::new(kind::SP, 4, saved::PAIR, 4),
        Rule::new(kind::SP, 4, saved::LINK, 5),
        Rule::new(kind::BP, 4, saved::PAIR, 5),
    ] {
        assert_eq!(Aarch64::saved_below_sp(other, &registers), None);
    }
}
