//! Where the stack of a goroutine ends. It lies in Go's heap, whose mapping goes on for
//! megabytes that have nothing to do with the stack.

use super::super::memory::user_word;
use super::super::registers::thread_base;

/// Bytes that are copied above the end that Go's runtime knows: if a thread of C runs Go on its
/// own stack, the frames of C that called Go are above that end.
const CALLERS_BYTES: u64 = 4096;

/// No stack of Go is larger unless the program asks for it (`debug.SetMaxStack`).
const STACK_MAX: u64 = 1 << 30;

/// Returns the end of the stack that `sp` is in, if the thread runs Go and says so; else 0.
///
/// The runtime keeps the address of the running goroutine's `g` one word below the thread's
/// `fs` (`runtime/asm_amd64.s`), and a `g` begins with the bounds of its stack. In a program
/// that is not Go another variable of the thread is there. It is believed only if it points to
/// two addresses with `sp` between them.
#[inline(always)]
pub fn stack_end(sp: u64) -> u64 {
    let base = thread_base();
    if base == 0 {
        return 0;
    }
    let goroutine = user_word(base.wrapping_sub(8));
    let (low, high) = (user_word(goroutine), user_word(goroutine.wrapping_add(8)));
    let is_in_between = low != 0 && low < sp && sp < high;
    if is_in_between && high - low <= STACK_MAX {
        high + CALLERS_BYTES
    } else {
        0
    }
}
