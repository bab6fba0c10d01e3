//! Steps between the stacks of Go: from C to the goroutine that called it, and from
//! the runtime to the goroutine that it works for.

use crate::registers::scratch;
use crate::rule::{Extended, base, extended_rbp};
use crate::status;
use crate::walk::{Walk, return_to};
use crate::world::World;

/// Takes the step from C to the goroutine that called it, see [`base::CGO_CALL`].
#[inline(always)]
pub fn cgo_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    /// Offset of the stack's end in `runtime.g`.
    const STACK_END: u64 = 8;
    let at = walk
        .registers
        .sp
        .wrapping_add(i64::from(rule.offset) as u64);
    let depth = world.read_or_zero(at.wrapping_sub(8));
    let goroutine = world.read_or_zero(at);
    let end = world.read_or_zero(goroutine.wrapping_add(STACK_END));
    // Without a goroutine, `depth` is the stack pointer itself.
    let from = if goroutine == 0 {
        depth
    } else {
        end.wrapping_sub(depth)
    };
    let cfa = from.wrapping_add(i64::from(rule.addend) as u64);
    let Some((bp, ip)) = world.read_pair(cfa.wrapping_sub(16)) else {
        return status::SWITCHED;
    };
    let bp = if rule.caller_rbp == extended_rbp::AT_CFA {
        bp
    } else {
        walk.registers.bp
    };
    return_to(ip, cfa, bp, walk)
}

/// Takes the step from the runtime to the goroutine that it works for, see
/// [`base::GOROUTINE`]. Go code has its `runtime.g` in r14; here that must be the one
/// of the thread's own stack, or r14 holds something else.
#[inline(always)]
pub fn goroutine_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    // Offsets in `runtime.g`, which begins with the bounds of its stack: the thread, and
    // what a switch saves; see src/runtime/runtime2.go.
    const THREAD: u64 = 48;
    const SAVED_SP: u64 = 56;
    let own = walk.scratch[scratch(base::R14)];
    let thread = world.read_or_zero(own.wrapping_add(THREAD));
    let of_thread = world.read_or_zero(thread);
    let current = world.read_or_zero(thread.wrapping_add(i64::from(rule.offset) as u64));
    let low = world.read_or_zero(current);
    let high = world.read_or_zero(current.wrapping_add(8));
    let sp = world.read_or_zero(current.wrapping_add(SAVED_SP));
    let saved_ip = world.read_or_zero(current.wrapping_add(SAVED_SP + 8));
    let bp = world.read_or_zero(current.wrapping_add(i64::from(rule.rbp_offset) as u64));
    let pushed_ip = world.read_or_zero(sp);
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
    let is_pushed = rule.deref != 0;
    let ip = if is_pushed { pushed_ip } else { saved_ip };
    let popped = if is_pushed { 8 } else { 0 };
    return_to(ip, sp.wrapping_add(popped), bp, walk)
}
