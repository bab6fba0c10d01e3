//! The step from Go's runtime, on a thread's own stack, to the goroutine that it works for.

use super::{Aarch64, X28, X30};
use crate::rule::Extended;
use crate::status;
use crate::walk::{Machine as _, Walk, return_to};
use crate::world::World;

// Offsets in `runtime.g`: the thread, and what a switch saves; see src/runtime/runtime2.go of Go.
const THREAD: u64 = 48;
const SAVED_SP: u64 = 56;
const SAVED_PC: u64 = 64;

/// Bytes of the frame of `runtime.systemstack` on the goroutine's stack: its return address,
/// and padding to a multiple of 16.
const CALLED_FRAME: u64 = 16;

/// Takes the step of [`GOROUTINE`](crate::rule::base::GOROUTINE). Go code has its `runtime.g` in
/// x28; here that must be the one of the thread's own stack, or x28 holds something else.
///
/// `runtime.systemstack` saves its own frame: the return address is at the saved stack pointer,
/// and x29 in the word below. `runtime.morestack` saves the registers of the function that has
/// no room, before it makes its frame: pc, sp, x29, and the return address in the word before x29.
#[inline(always)]
pub fn goroutine_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    let own = walk.scratch[X28];
    let thread = world.read_or_zero(own.wrapping_add(THREAD));
    let of_thread = world.read_or_zero(thread);
    let current = world.read_or_zero(thread.wrapping_add(i64::from(rule.offset) as u64));
    let low = world.read_or_zero(current);
    let high = world.read_or_zero(current.wrapping_add(8));
    let sp = world.read_or_zero(current.wrapping_add(SAVED_SP));
    let saved_pc = world.read_or_zero(current.wrapping_add(SAVED_PC));
    let at = current.wrapping_add(i64::from(rule.rbp_offset) as u64);
    let is_called = rule.deref != 0;
    let pair = if is_called { sp } else { at };
    // On the stack x29 is `below` and the return address `above`; in `runtime.g` it is reversed.
    let below = world.read_or_zero(pair.wrapping_sub(8));
    let above = world.read_or_zero(pair);
    if own == 0 || of_thread != own || current == own {
        return status::SWITCHED;
    }
    if current == 0 {
        // The thread has let go of its goroutine: the scheduler works for itself.
        return status::END;
    }
    if sp < low || sp >= high {
        return status::SWITCHED;
    }
    if is_called {
        let pc = above & Aarch64::ADDRESS_BITS;
        return return_to(pc, sp.wrapping_add(CALLED_FRAME), below, walk);
    }
    walk.scratch[X30] = below;
    walk.is_exact = 1;
    return_to(saved_pc, sp, above, walk)
}
