//! The state of a thread that is in the middle of hitting a breakpoint.
//!
//! A hit takes the kernel most of a microsecond, so that the clock finds many threads in one. The
//! registers with which they entered the kernel do not always fit the unwind information:
//!
//! 1. The CPU has run the breakpoint, and the pc is one byte behind its beginning, until the
//!    kernel has found out whose it is (`handle_swbp` in kernel/events/uprobes.c).
//! 2. The programs for the hit run. The pc is right.
//! 3. The return address is replaced. Until the kernel has noted the right one, only our own
//!    program for the beginning of the call knows it: it has left it in `LAST_HIT`.
//! 4. The instruction is emulated (`push_emulate_op` in arch/x86/kernel/uprobes.c): the word is
//!    already pushed while the pc is still at the instruction, then the pc is behind it. A `push`
//!    often has one byte, and then this pc is that of 1. The stack pointer tells which it is.

use super::current_task::{current_task, entry_registers};
use super::maps::{Hit, LAST_HIT, TASK_UTASK_OFFSET};
use super::memory::kernel_word;
use super::saved_registers;
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;

/// Bit of [`hit_state`]: the pc is one byte behind the instruction that the thread is at.
pub const IS_BEHIND: u64 = 1;

/// Bit of [`hit_state`]: the stack pointer is 8 bytes below that at this instruction.
pub const HAS_PUSHED: u64 = 8;

/// The byte of a breakpoint (`int3`).
const BREAKPOINT: u8 = 0xcc;

/// Notes a hit of the current thread, before the kernel continues to handle it.
#[inline(always)]
pub fn note(regs: *const pt_regs, is_replaced: bool) {
    let Some(hit) = LAST_HIT.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: a value of this CPU, and the context's registers. The address of these is written
    // last: the clock may interrupt this.
    unsafe {
        (&raw mut (*hit).registers).write_volatile(0);
        let sp = saved_registers::sp(regs);
        (*hit).ip = saved_registers::pc(regs);
        (*hit).sp = sp;
        if is_replaced {
            let into = &raw mut (*hit).return_address as *mut c_void;
            helpers::bpf_probe_read_user(into, 8, sp as *const c_void);
        }
        // The registers' address identifies the thread: they are at the upper end of its kernel
        // stack. To get its number would be a call of a helper at each hit.
        (&raw mut (*hit).registers).write_volatile(regs as u64);
    }
}

/// Returns the last hit on this CPU, if the current thread made it.
#[inline(always)]
fn own_hit() -> Option<*const Hit> {
    let hit = LAST_HIT.get_ptr(0)?;
    let registers = entry_registers(current_task());
    // SAFETY: a value of this CPU.
    unsafe { ((*hit).registers == registers).then_some(hit) }
}

/// Returns how far the current thread, which entered the kernel at `ip`, is in hitting a
/// breakpoint: 0, [`IS_BEHIND`] or [`HAS_PUSHED`].
///
/// Exported, and with plain numbers only, for the reason given at `probed::real_address`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hit_state(ip: u64, sp: u64) -> u64 {
    let offset = TASK_UTASK_OFFSET.load();
    if offset == 0 {
        return 0;
    }
    // A thread that has never hit a breakpoint of the kernel has no `utask`.
    if kernel_word(current_task() + offset as u64) == 0 {
        return 0;
    }
    let pushed_at = pushed_at(sp);
    if pushed_at == ip {
        return HAS_PUSHED;
    }
    let mut before = 0u8;
    let into = &raw mut before as *mut c_void;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe { helpers::bpf_probe_read_user(into, 1, ip.wrapping_sub(1) as *const c_void) };
    (before == BREAKPOINT && pushed_at != ip.wrapping_sub(1)) as u64
}

/// Returns where the breakpoint is that the current thread has hit last, if the stack pointer has
/// gone down by one word since; else 0. Exported for the same reason.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn pushed_at(sp: u64) -> u64 {
    match own_hit() {
        // SAFETY: a value of this CPU.
        Some(hit) => unsafe {
            if (*hit).sp == sp.wrapping_add(8) {
                (*hit).ip
            } else {
                0
            }
        },
        None => 0,
    }
}

/// Returns the return address that the current thread's last hit found at `slot`; 0 if that hit
/// was elsewhere. Exported for the same reason.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn return_address_at(slot: u64) -> u64 {
    match own_hit() {
        // SAFETY: a value of this CPU.
        Some(hit) => unsafe {
            if (*hit).sp == slot {
                (*hit).return_address
            } else {
                0
            }
        },
        None => 0,
    }
}
