//! The user registers of the current task, from which its stack is walked.

use super::current_task::{are_of_entry, current_task, entry_registers};
use super::hit;
use super::maps::{Scratch, TASK_FLAGS_OFFSET, TASK_FS_BASE_OFFSET};
use super::memory::kernel_word;
use super::saved_registers::interrupted;
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::WINDOW_BYTES;
use probe_ebpf::status;

const _: () = assert!(size_of::<pt_regs>() <= WINDOW_BYTES);

/// Reads the registers with which the current task entered the kernel. A kernel
/// thread never did.
#[inline(never)]
pub fn at_entry(scratch: *mut Scratch) -> u32 {
    // The window of the stack is not in use before the walk begins.
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let room = unsafe { &raw mut (*scratch).window } as *mut pt_regs;
    // SAFETY: helpers made for this; every read is checked by the kernel, and the window is
    // longer than what is read.
    unsafe {
        let task = current_task();
        let entry = entry_registers(task) as *const c_void;
        helpers::bpf_probe_read_kernel(room as *mut c_void, size_of::<pt_regs>() as u32, entry);
        interrupted(room, scratch);
        let walk = &mut (*scratch).walk;
        if !are_of_entry(room) {
            walk.status = status::NO_STACK;
        }
        if is_exiting(task) {
            walk.status = status::EXITING;
        }
        // While the kernel handles the hit of a breakpoint, the thread is at that breakpoint.
        let hit = hit::hit_state(walk.registers.ip, walk.registers.sp);
        walk.registers.ip -= hit & hit::IS_BEHIND;
        walk.registers.sp += hit & hit::HAS_PUSHED;
    }
    0
}

/// Returns the address from which the current thread's own variables are counted (`fs`), which is
/// its `pthread_t` as well; 0 if that is not known.
#[inline(always)]
pub fn thread_base() -> u64 {
    let offset = TASK_FS_BASE_OFFSET.load();
    if offset == 0 {
        return 0;
    }
    // SAFETY: a helper without arguments.
    let task = unsafe { helpers::bpf_get_current_task() };
    kernel_word(task + offset as u64)
}

/// Returns whether the task has begun to end: then its stack may be gone already.
#[inline(always)]
fn is_exiting(task: u64) -> bool {
    /// `PF_EXITING` of include/linux/sched.h, the same since Linux 2.6.
    const EXITING: u64 = 4;
    let offset = TASK_FLAGS_OFFSET.load();
    if offset == 0 {
        return false;
    }
    kernel_word(task + offset as u64) & EXITING != 0
}
