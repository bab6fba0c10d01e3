//! Where the stack of a goroutine ends. It lies in Go's heap, whose mapping goes on for
//! megabytes that have nothing to do with it.

use super::super::memory::user_word;
use super::super::registers::thread_base;

/// What is copied above the end that Go's runtime tells: on the stack of a thread of C, which
/// runs Go, the frames of C that led there are above it.
const CALLERS_BYTES: u64 = 4096;

/// No stack of Go is larger unless the program asks for it (`debug.SetMaxStack`).
const STACK_MAX: u64 = 1 << 30;

/// The address behind the stack that `sp` is in, if the thread runs Go and says so; else 0.
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
