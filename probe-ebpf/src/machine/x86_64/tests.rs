use super::*;
use crate::registers::Registers;
use crate::walk::frame;
use crate::world::tests::Stack;
use std::vec;
use std::vec::Vec;

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

fn check(
    rule: Rule,
    mut walk: Walk,
    mut stack: Stack<'_>,
    expected: Result<(u64, u64, u64), u32>,
) -> Walk {
    let before = walk.registers;
    let status = frame::<X86_64, _>(Some(rule), &mut walk, &mut stack);
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
fn cfa_from_rsp_and_rbp_not_saved() {
    // sub $8,%rsp: cfa = rsp + 16
    let words = [0, 0x40_2000, 9];
    check(
        Rule::new(kind::SP, 2, 0, 0),
        at(0x7000, 5),
        Stack::new(&words),
        Ok((0x40_2000, 0x7010, 5)),
    );
}

#[test]
fn rbp_below_the_return_address() {
    // push %rbp; mov %rsp,%rbp: cfa = rbp + 16, rbp at cfa - 16
    let words = [0, 0x7777, 0x40_2000];
    let rule = Rule::new(kind::BP, 2, caller_rbp::AT_CFA, 2);
    check(
        rule,
        at(0x7000, 0x7008),
        Stack::new(&words),
        Ok((0x40_2000, 0x7018, 0x7777)),
    );
}

#[test]
fn rbp_among_other_saved_registers() {
    // push %r15; push %rbp; push %rbx: cfa = rsp + 32, rbp at cfa - 24
    let words = [1, 0x7777, 3, 0x40_2000];
    let rule = Rule::new(kind::SP, 4, caller_rbp::AT_CFA, 3);
    check(
        rule,
        at(0x7000, 5),
        Stack::new(&words),
        Ok((0x40_2000, 0x7020, 0x7777)),
    );
}

#[test]
fn a_plt_slot_before_and_behind_its_push() {
    let words = [0x40_2000, 0x40_3000];
    let rule = Rule::special(special::PLT + 11);
    let mut walk = at(0x7000, 5);
    walk.registers.ip = 0x40_100a;
    check(rule, walk, Stack::new(&words), Ok((0x40_2000, 0x7008, 5)));
    walk.registers.ip = 0x40_100b;
    check(rule, walk, Stack::new(&words), Ok((0x40_3000, 0x7010, 5)));
}

#[test]
fn a_signal_frame_restores_everything_and_its_pc_is_exact() {
    let mut words = vec![0u64; 32];
    (words[15], words[20], words[21]) = (0x1111, 0x9000, 0x40_5000);
    let rule = Rule::special(special::SIGNAL);
    let walk = check(
        rule,
        at(0x7000, 5),
        Stack::new(&words),
        Ok((0x40_5000, 0x9000, 0x1111)),
    );
    assert_eq!(walk.is_exact, 1);
    // The step after it is an ordinary one again.
    let words = [0, 0x40_2000];
    let mut next = Walk {
        registers: Registers {
            ip: 1,
            sp: 0x7000,
            bp: 5,
        },
        ..walk
    };
    frame::<X86_64, _>(
        Some(Rule::new(kind::SP, 2, 0, 0)),
        &mut next,
        &mut Stack::new(&words),
    );
    assert_eq!(next.is_exact, 0);
}

#[test]
fn a_realigned_stack() {
    // DRAP: cfa = *(rbp - 8), rbp at *rbp
    let words = [0, 0x7028, 0x8888, 0, 0x40_2000];
    let rule = Rule::new(kind::EXTENDED, 0, 0, 0);
    let extended = Extended {
        base: base::RBP,
        deref: 1,
        offset: -8,
        caller_rbp: extended_rbp::AT_RBP,
        ..Extended::default()
    };
    let stack = Stack {
        extended,
        ..Stack::new(&words)
    };
    check(
        rule,
        at(0x7000, 0x7010),
        stack,
        Ok((0x40_2000, 0x7028, 0x8888)),
    );
}

#[test]
fn a_scratch_register_is_known_in_the_leaf_only() {
    let words = [0, 0, 0x40_2000];
    let rule = Rule::new(kind::EXTENDED, 0, 0, 0);
    let extended = Extended {
        base: base::R10,
        ..Extended::default()
    };
    let mut walk = at(0x7000, 5);
    walk.scratch[0] = 0x7018;
    let stack = || Stack {
        extended,
        ..Stack::new(&words)
    };
    check(rule, walk, stack(), Ok((0x40_2000, 0x7018, 5)));
    walk.is_leaf = 0;
    check(rule, walk, stack(), Err(status::UNSUPPORTED));
}

#[test]
fn ends_and_failures() {
    let end = Rule::special(special::END);
    check(end, at(0x7000, 5), Stack::new(&[]), Err(status::END));
    let plain = Rule::new(kind::SP, 1, 0, 0);
    check(plain, at(0x7000, 5), Stack::new(&[0]), Err(status::END));
    check(
        plain,
        at(0x7000, 5),
        Stack::new(&[]),
        Err(status::READ_FAULT),
    );
    let downwards = Rule::new(kind::SP, 0, 0, 0);
    check(
        downwards,
        at(0x7000, 5),
        Stack::new(&[1]),
        Err(status::STUCK),
    );
    let unsupported = Rule::special(special::UNSUPPORTED);
    check(
        unsupported,
        at(0x7000, 5),
        Stack::new(&[1]),
        Err(status::UNSUPPORTED),
    );
    let mut walk = at(0x7000, 5);
    assert_eq!(
        frame::<X86_64, _>(None, &mut walk, &mut Stack::new(&[])),
        status::NO_MAPPING
    );
}

#[test]
fn a_start_written_by_hand_is_the_root() {
    let hole = Rule::special(special::FRAME_POINTER);
    let mut walk = at(0x7000, 0);
    // The interrupted function may use rbp for anything.
    check(hole, walk, Stack::new(&[]), Err(status::CHAIN_END));
    walk.is_leaf = 0;
    check(hole, walk, Stack::new(&[]), Err(status::END));
    // So may code that was made at run time.
    let no_table = Rule::special(special::NO_TABLE);
    check(no_table, walk, Stack::new(&[]), Err(status::CHAIN_END));
}

#[test]
fn a_frame_pointer_into_another_stack() {
    // The caller's stack is below ours.
    let words = [0x7040, 0x40_2000];
    let rule = Rule::special(special::STACK_SWITCH);
    check(
        rule,
        at(0x9000, 0x7000),
        Stack::new(&words),
        Ok((0x40_2000, 0x7010, 0x7040)),
    );
    check(rule, at(0x9000, 0), Stack::new(&words), Err(status::END));
    let elsewhere = at(0x9000, 0xa000);
    check(rule, elsewhere, Stack::new(&words), Err(status::SWITCHED));
}

fn extended(extended: Extended, words: &[u64]) -> (Rule, Stack<'_>) {
    let stack = Stack {
        extended,
        ..Stack::new(words)
    };
    (Rule::new(kind::EXTENDED, 0, 0, 0), stack)
}

#[test]
fn rbx_is_followed_from_frame_to_frame() {
    // push %rbx: cfa = rsp + 16, rbx at cfa - 16; then cfa = rbx + 24.
    let words = [0x7018, 0x40_2000, 0, 1, 2, 0x40_3000];
    let saves = Extended {
        base: base::RSP,
        offset: 16,
        caller_rbx: extended_rbx::AT_CFA,
        ..Extended::default()
    };
    let uses = Extended {
        base: base::RBX,
        offset: 24,
        ..Extended::default()
    };
    let mut walk = at(0x7000, 5);
    X86_64::begin(&mut walk);
    let (rule, stack) = extended(saves, &words);
    let walk = check(rule, walk, stack, Ok((0x40_2000, 0x7010, 5)));
    let (rule, stack) = extended(uses, &words);
    check(rule, walk, stack, Ok((0x40_3000, 0x7030, 5)));
    // A step in between by a rule that says nothing about rbx.
    let mut walk = at(0x7000, 5);
    X86_64::begin(&mut walk);
    let plain = Rule::new(kind::SP, 2, 0, 0);
    let walk = check(plain, walk, Stack::new(&words), Ok((0x40_2000, 0x7010, 5)));
    let (rule, stack) = extended(uses, &words);
    check(rule, walk, stack, Err(status::UNSUPPORTED));
}

#[test]
fn from_c_to_the_goroutine_that_called_it() {
    // 0x7000: depth, goroutine; 0x7010: its stack; 0x7020: saved rbp and ip.
    let words = [0x18, 0x7010, 0x7000, 0x7038, 0x7777, 0x40_2000, 0, 0];
    let call = Extended {
        base: base::CGO_CALL,
        offset: 8,
        addend: 16,
        caller_rbp: extended_rbp::AT_CFA,
        ..Extended::default()
    };
    let (rule, stack) = extended(call, &words);
    check(rule, at(0x7000, 5), stack, Ok((0x40_2000, 0x7030, 0x7777)));
    // Without a change of stacks.
    let words = [0x7010, 0, 0x7777, 0x40_2000];
    let (rule, stack) = extended(call, &words);
    check(rule, at(0x7000, 5), stack, Ok((0x40_2000, 0x7020, 0x7777)));
}

#[test]
fn a_return_address_in_a_register() {
    let vfork = Extended {
        base: base::RDI,
        deref: deref::RETURN,
        ..Extended::default()
    };
    let mut walk = at(0x7000, 5);
    walk.scratch[scratch(base::RDI)] = 0x40_2000;
    // The stack is as high as the caller's.
    let (rule, stack) = extended(vfork, &[1]);
    check(rule, walk, stack, Ok((0x40_2000, 0x7000, 5)));
    walk.is_leaf = 0;
    let (rule, stack) = extended(vfork, &[1]);
    check(rule, walk, stack, Err(status::UNSUPPORTED));
}

#[test]
fn from_the_runtime_to_its_goroutine() {
    // Our `g` at 0x7000, its thread at 0x7040, the goroutine at 0x7060.
    let mut words = [0u64; 40];
    words[6] = 0x7040;
    (words[8], words[9]) = (0x7000, 0x7060);
    (words[12], words[13]) = (0x7100, 0x7140);
    (words[19], words[20], words[21]) = (0x7108, 0x40_5000, 0x7777);
    words[33] = 0x40_2000;
    let goroutine = Extended {
        base: base::GOROUTINE,
        offset: 8,
        rbp_offset: 72,
        ..Extended::default()
    };
    let mut walk = at(0x9000, 5);
    walk.is_leaf = 0;
    walk.scratch[scratch(base::R14)] = 0x7000;
    let (rule, stack) = extended(goroutine, &words);
    check(rule, walk, stack, Ok((0x40_5000, 0x7108, 0x7777)));
    let called = Extended {
        deref: 1,
        ..goroutine
    };
    let (rule, stack) = extended(called, &words);
    check(rule, walk, stack, Ok((0x40_2000, 0x7110, 0x7777)));
    // The thread has let go of its goroutine.
    let mut without = words;
    without[9] = 0;
    let (rule, stack) = extended(called, &without);
    check(rule, walk, stack, Err(status::END));
    // r14 holds something else.
    walk.scratch[scratch(base::R14)] = 0x7008;
    let (rule, stack) = extended(called, &words);
    check(rule, walk, stack, Err(status::SWITCHED));
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
        let extended = Extended {
            base: random() as u8,
            deref: random() as u8 & 1,
            caller_rbp: random() as u8 % 3,
            caller_rbx: random() as u8 % 4,
            offset: random() as i32,
            addend: random() as i32,
            rbp_offset: random() as i32,
        };
        let mut stack = Stack {
            extended,
            ..Stack::new(&words)
        };
        for _ in 0..64 {
            let rule = Rule(random() as u32);
            if frame::<X86_64, _>(Some(rule), &mut walk, &mut stack) != status::CALLER {
                break;
            }
        }
    }
}
