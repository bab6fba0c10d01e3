//! The loops of the object for kernels without `bpf_loop`, which came with Linux 5.17.
//!
//! Each turn runs the same code as in the other objects: the body that `bpf_loop` would call. Here
//! an ordinary loop calls it. To the verifier an ordinary loop is its body, as often as it may be
//! run, so the body is called by an exported function. The verifier checks such a function once by
//! itself, and a call of it is one instruction that gives any number.
//!
//! Long loops are loops of short ones, each of them an exported function as well: to the verifier,
//! 512 turns are then some hundred instructions, and not thousands.
//!
//! An exported function takes numbers, but no pointers before Linux 5.12. So each one looks up
//! again what the body needs, which is in maps.

/// Calls `turn` with the numbers below `times`, which is small, until it returns something other
/// than 0.
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

/// Number of turns of a short loop.
const SOME: u32 = 32;

/// Calls `some` with the number of turns that are left, of which it takes [`SOME`], until it
/// returns something other than 0.
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

/// Takes [`SOME`] turns, or those that are left. Returns 1 if the loop is over.
#[inline(always)]
pub fn take_some(left: u64, turn: impl Fn() -> u64) -> u64 {
    for number in 0..SOME {
        if number as u64 >= left || turn() != 0 {
            return 1;
        }
    }
    0
}
