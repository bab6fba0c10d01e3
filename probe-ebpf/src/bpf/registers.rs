//! The user registers of the current task, from which its stack is walked.

use super::hit;
use super::maps::{Scratch, TASK_FLAGS_OFFSET};
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::WINDOW_BYTES;
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::{Registers, status};

/// `cs` of 32-bit user code, `__USER32_CS` of the x86-64 kernel.
const USER32_CS: u64 = 0x23;

const _: () = assert!(size_of::<pt_regs>() <= WINDOW_BYTES);

/// The registers that an interrupt of user code has saved.
#[inline(always)]
pub fn interrupted(interrupted: *const pt_regs, scratch: *mut Scratch) {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let walk = unsafe { &mut (*scratch).walk };
    // SAFETY: the context's registers, read one by one.
    unsafe {
        walk.status = status_for((*interrupted).cs);
        walk.registers.ip = (*interrupted).rip;
        walk.registers.sp = (*interrupted).rsp;
        walk.registers.bp = (*interrupted).rbp;
        // In the order of `rule::base`, from r10 on.
        walk.scratch[0] = (*interrupted).r10;
        walk.scratch[1] = (*interrupted).rax;
        walk.scratch[2] = (*interrupted).rcx;
        walk.scratch[3] = (*interrupted).rsi;
        walk.scratch[4] = (*interrupted).rdi;
        walk.scratch[5] = (*interrupted).r8;
        walk.scratch[6] = (*interrupted).r9;
        walk.scratch[7] = (*interrupted).r11;
        walk.scratch[8] = (*interrupted).r13;
        walk.scratch[9] = (*interrupted).rdx;
        walk.scratch[10] = (*interrupted).r12;
        walk.scratch[11] = (*interrupted).r14;
        walk.scratch[12] = (*interrupted).r15;
        walk.scratch[13] = (*interrupted).rbx;
    }
}

/// The registers with which the current task entered the kernel. A kernel
/// thread never did.
#[inline(never)]
pub fn at_entry(scratch: *mut Scratch) -> u32 {
    // The window of the stack is not in use before the walk begins.
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let room = unsafe { &raw mut (*scratch).window } as *mut pt_regs;
    // SAFETY: helpers made for this; every read is checked by the kernel, and the window is
    // longer than what is read.
    unsafe {
        let task = helpers::bpf_get_current_task_btf();
        let entry = helpers::bpf_task_pt_regs(task) as *const c_void;
        helpers::bpf_probe_read_kernel(room as *mut c_void, size_of::<pt_regs>() as u32, entry);
        interrupted(room, scratch);
        let walk = &mut (*scratch).walk;
        if is_exiting(task as *const u8) {
            walk.status = status::EXITING;
        }
        // A breakpoint is where the thread is while the kernel handles its hit.
        let hit = hit::hit_state(walk.registers.ip, walk.registers.sp);
        walk.registers.ip -= hit & hit::IS_BEHIND;
        walk.registers.sp += hit & hit::HAS_PUSHED;
    }
    0
}

/// Reads what a task entered the kernel with. The offsets in pt_regs are part of the x86-64
/// ABI.
#[inline(always)]
pub fn read_entry(
    entry: *const pt_regs,
    registers: &mut Registers,
    scratch: &mut [u64; SCRATCH_REGISTERS],
) {
    // SAFETY: only addresses of fields are made; every read is checked by the kernel.
    unsafe {
        read_kernel(&mut registers.ip, &raw const (*entry).rip);
        read_kernel(&mut registers.sp, &raw const (*entry).rsp);
        read_kernel(&mut registers.bp, &raw const (*entry).rbp);
        // A page fault can hit where a cfa is counted from r10; a system call
        // cannot.
        read_kernel(&mut scratch[0], &raw const (*entry).r10);
        read_kernel(&mut scratch[1], &raw const (*entry).rax);
        read_kernel(&mut scratch[2], &raw const (*entry).rcx);
        read_kernel(&mut scratch[3], &raw const (*entry).rsi);
        read_kernel(&mut scratch[4], &raw const (*entry).rdi);
        read_kernel(&mut scratch[5], &raw const (*entry).r8);
        read_kernel(&mut scratch[6], &raw const (*entry).r9);
        read_kernel(&mut scratch[7], &raw const (*entry).r11);
        read_kernel(&mut scratch[8], &raw const (*entry).r13);
        read_kernel(&mut scratch[9], &raw const (*entry).rdx);
        read_kernel(&mut scratch[10], &raw const (*entry).r12);
        read_kernel(&mut scratch[11], &raw const (*entry).r14);
        read_kernel(&mut scratch[12], &raw const (*entry).r15);
        read_kernel(&mut scratch[13], &raw const (*entry).rbx);
    }
}

/// Whether the task has begun to end: then its stack may be gone already.
#[inline(always)]
fn is_exiting(task: *const u8) -> bool {
    /// `PF_EXITING` of include/linux/sched.h, the same since Linux 2.6.
    const EXITING: u64 = 4;
    let offset = TASK_FLAGS_OFFSET.load();
    if offset == 0 {
        return false;
    }
    let mut flags = 0u64;
    // SAFETY: the offset is inside this kernel's task_struct.
    let address = unsafe { task.add(offset as usize) };
    read_kernel(&mut flags, address as *const u64);
    flags & EXITING != 0
}

/// Whether there is a stack to walk: by the code segment.
#[inline(always)]
fn status_for(cs: u64) -> u32 {
    if cs & 3 != 3 {
        status::NO_STACK
    } else if cs == USER32_CS {
        status::COMPAT_32
    } else {
        status::CALLER
    }
}

#[inline(always)]
fn read_kernel(into: &mut u64, from: *const u64) {
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(into as *mut u64 as *mut c_void, 8, from as *const c_void)
    };
}
