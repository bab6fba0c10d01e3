//! The registers of x86-64. Their places in `pt_regs` are part of the kernel's ABI.

use super::super::maps::Scratch;
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::{Registers, status};

/// `cs` of 32-bit user code, `__USER32_CS` of the x86-64 kernel.
const USER32_CS: u64 = 0x23;

/// Returns whether these are registers of user code.
#[inline(always)]
pub fn is_user(registers: *const pt_regs) -> bool {
    // SAFETY: registers that the kernel has saved; a plain load that the verifier knows.
    unsafe { (*registers).cs & 3 == 3 }
}

/// Returns the pc.
#[inline(always)]
pub fn pc(registers: *const pt_regs) -> u64 {
    // SAFETY: as above.
    unsafe { (*registers).rip }
}

/// Returns the stack pointer.
#[inline(always)]
pub fn sp(registers: *const pt_regs) -> u64 {
    // SAFETY: as above.
    unsafe { (*registers).rsp }
}

/// Copies the registers that an interrupt of user code has saved.
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

/// Reads the registers with which a task entered the kernel.
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
        // A page fault can hit code whose CFA is counted from r10; a system call
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

/// Returns whether there is a stack to walk: by the code segment.
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
