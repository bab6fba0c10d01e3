//! The registers of AArch64. Programs get the kernel's `user_pt_regs`, with which the kernel's
//! own `pt_regs` begin as well (arch/arm64/include/asm/ptrace.h).

use super::super::maps::Scratch;
use aya_ebpf::bindings::pt_regs;
use probe_ebpf::status;

/// Bits of `pstate`: where the code ran, `PSR_MODE_MASK`. User code of 64 bits has none set.
const MODE: u64 = 0x1f;

/// The bit of these for code of 32 bits: `PSR_MODE32_BIT`. User code has no other bit set.
const MODE_32: u64 = 0x10;

/// Returns whether these are registers of user code.
#[inline(always)]
pub fn is_user(registers: *const pt_regs) -> bool {
    // SAFETY: registers that the kernel has saved; a plain load that the verifier knows.
    unsafe { (*registers).pstate & (MODE & !MODE_32) == 0 }
}

/// Returns the pc.
#[inline(always)]
pub fn pc(registers: *const pt_regs) -> u64 {
    // SAFETY: as above.
    unsafe { (*registers).pc }
}

/// Returns the stack pointer.
#[inline(always)]
pub fn sp(registers: *const pt_regs) -> u64 {
    // SAFETY: as above.
    unsafe { (*registers).sp }
}

/// Copies the registers that an interrupt of user code has saved.
#[inline(always)]
pub fn interrupted(interrupted: *const pt_regs, scratch: *mut Scratch) {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let walk = unsafe { &mut (*scratch).walk };
    // SAFETY: the context's registers, read one by one.
    unsafe {
        walk.status = status_for((*interrupted).pstate);
        walk.registers.ip = (*interrupted).pc;
        walk.registers.sp = (*interrupted).sp;
        walk.registers.bp = (*interrupted).regs[29];
        // In the order of `rule::aarch64::SCRATCH`.
        walk.scratch[0] = (*interrupted).regs[30];
        walk.scratch[1] = (*interrupted).regs[8];
        walk.scratch[2] = (*interrupted).regs[9];
        walk.scratch[3] = (*interrupted).regs[10];
        walk.scratch[4] = (*interrupted).regs[11];
        walk.scratch[5] = (*interrupted).regs[12];
        walk.scratch[6] = (*interrupted).regs[13];
        walk.scratch[7] = (*interrupted).regs[14];
        walk.scratch[8] = (*interrupted).regs[15];
        walk.scratch[9] = (*interrupted).regs[16];
        walk.scratch[10] = (*interrupted).regs[17];
        walk.scratch[11] = (*interrupted).regs[19];
        walk.scratch[12] = (*interrupted).regs[20];
        walk.scratch[13] = (*interrupted).regs[28];
    }
}

/// Returns whether there is a stack to walk. Threads of the kernel have a mode of the kernel.
#[inline(always)]
fn status_for(pstate: u64) -> u32 {
    match pstate & MODE {
        0 => status::CALLER,
        MODE_32 => status::COMPAT_32,
        _ => status::NO_STACK,
    }
}
