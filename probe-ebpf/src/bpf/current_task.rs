//! The current task, and the registers with which it entered the kernel.
//!
//! Helpers for both exist from Linux 5.11 and 5.15 on. The object for kernels without
//! `bpf_loop` cannot use them.

use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;

/// Returns the address of the current task's `task_struct`.
#[cfg(not(feature = "without_loop"))]
#[inline(always)]
pub fn current_task() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { helpers::bpf_get_current_task_btf() as u64 }
}

/// Returns the address of the current task's `task_struct`.
#[cfg(feature = "without_loop")]
#[inline(always)]
pub fn current_task() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { helpers::bpf_get_current_task() }
}

/// Returns the address of the `pt_regs` of the current task, which is `task`.
#[cfg(not(feature = "without_loop"))]
#[inline(always)]
pub fn entry_registers(task: u64) -> u64 {
    // SAFETY: a helper that takes a task, which `task` is.
    unsafe { helpers::bpf_task_pt_regs(task as *mut aya_ebpf::bindings::task_struct) as u64 }
}

/// Returns the address of the `pt_regs` of the current task, which is `task`; 0 if it is not known.
/// They lie at the upper end of the thread's kernel stack (`task_pt_regs` in
/// arch/x86/include/asm/processor.h). No kernel says how large that is: see [`are_of_entry`].
#[cfg(feature = "without_loop")]
#[inline(always)]
pub fn entry_registers(task: u64) -> u64 {
    use super::maps::{ENTRY_REGISTERS_OFFSET, TASK_STACK_OFFSET};
    use super::memory::kernel_word;
    let offset = ENTRY_REGISTERS_OFFSET.load();
    if offset == 0 {
        return 0;
    }
    kernel_word(task + TASK_STACK_OFFSET.load() as u64) + offset as u64
}

/// Returns whether a program entered the kernel with these registers. The helper gives no others.
#[cfg(not(feature = "without_loop"))]
#[inline(always)]
pub fn are_of_entry(_registers: *const pt_regs) -> bool {
    true
}

/// Returns whether a program entered the kernel with these registers, by the stack segment. Other
/// data is at that place in a thread of the kernel, and in a kernel whose threads have larger
/// stacks than usual (`CONFIG_KASAN`).
#[cfg(feature = "without_loop")]
#[inline(always)]
pub fn are_of_entry(registers: *const pt_regs) -> bool {
    /// `__USER_DS` of arch/x86/include/asm/segment.h. Under Xen, higher bits are set as well.
    const USER_DS: u64 = 0x2b;
    // SAFETY: the caller's copy; a plain load that the verifier knows.
    unsafe { (*registers).ss & 0xfff == USER_DS }
}
