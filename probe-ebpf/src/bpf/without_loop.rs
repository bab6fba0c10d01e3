//! The loops of the object for kernels without `bpf_loop`, which came with Linux 5.17.
//!
//! What is done in a turn is the same code as in the other objects: the body that `bpf_loop` would
//! call. Here an ordinary loop calls it. To the verifier an ordinary loop is its body, as often as
//! it may be run, so the body is called by an exported function. Such a function is verified once by
//! itself, and a call of it is one instruction that gives any number.
//!
//! Long loops are loops of short ones, each of them an exported function as well: 512 turns are some
//! hundred instructions to the verifier then, and not thousands.
//!
//! An exported function may be given numbers, but no pointers before Linux 5.12. So each looks up
//! again what the body needs, which is in maps.

/// Calls `turn` with the numbers below `times`, which are few, until it says by something else than
/// 0 that it is over.
#[inline(always)]
pub fn repeat(times: u32, turn: impl Fn(u64) -> u64) {
    let mut number = 0;
    while number < times {
        if turn(number as u64) != 0 {
            break;
        }
        number += 1;
    }
}

/// Turns of a short loop.
const SOME: u32 = 32;

/// Calls `some` with how many turns are left, of which it takes [`SOME`], until it says by something
/// else than 0 that it is over.
#[inline(always)]
pub fn repeat_by_some(times: u32, some: impl Fn(u64) -> u64) {
    let mut done = 0;
    while done < times {
        if some((times - done) as u64) != 0 {
            break;
        }
        done += SOME;
    }
}

/// Takes [`SOME`] turns, or those that are left. 1 if it is over.
#[inline(always)]
pub fn take_some(left: u64, turn: impl Fn() -> u64) -> u64 {
    for number in 0..SOME {
        if number as u64 >= left || turn() != 0 {
            return 1;
        }
    }
    0
}
