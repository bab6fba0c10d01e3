//! The step on x86-64.
//!
//! ```text
//!   higher addresses
//!   │ caller's locals   │
//!   ├───────────────────┤ ◄ cfa = sp or bp + offset: the caller's sp
//!   │ return address    │   cfa - 8
//!   │ caller's rbp      │   cfa - 8 * slot, if it was saved
//!   │ locals            │
//!   └───────────────────┘ ◄ sp
//! ```
//!
//! rbx is tracked as well, in files whose tables count from it: the walk has the rbx of the frame
//! whose stack pointer is `rbx_at`. A rule that says nothing about rbx changes neither. As frames
//! have different stack pointers, the caller's rbx is then unknown.

mod go;

use crate::registers::{Registers, scratch};
use crate::rule::{
    Extended, Rule, base, caller_rbp, deref, extended_rbp, extended_rbx, kind, special,
};
use crate::status;
use crate::walk::{Machine, Walk, by_frame_pointer, return_to};
use crate::world::World;

/// The 64-bit x86 architecture.
#[derive(Debug, Clone, Copy)]
pub struct X86_64;

impl Machine for X86_64 {
    const ADDRESS_BITS: u64 = u64::MAX;

    /// Tables name such a place in an epilogue, because compilers do not record that a register has
    /// been popped. If the CFA counts from the stack pointer, only the frame pointer is ever looked
    /// for there, and it has its caller's value again.
    #[inline(always)]
    fn saved_below_sp(rule: Rule, registers: &Registers) -> Option<u64> {
        (rule.kind() == kind::SP).then_some(registers.bp)
    }

    #[inline(always)]
    fn begin(walk: &mut Walk) {
        walk.rbx = walk.scratch[scratch(base::RBX)];
        walk.rbx_at = walk.registers.sp;
    }

    #[inline(always)]
    fn step<W: World>(rule: Rule, _is_exact: bool, walk: &mut Walk, world: &mut W) -> u32 {
        match rule.kind() {
            kind::SPECIAL => special_step(rule.offset(), walk, world),
            kind::EXTENDED => {
                let extended = world.extended(rule.offset());
                extended_step(&extended, walk, world)
            }
            which => {
                let from = if which == kind::BP {
                    walk.registers.bp
                } else {
                    walk.registers.sp
                };
                let cfa = from.wrapping_add(u64::from(rule.offset()) * 8);
                let slot = rule.slot();
                if rule.saved() == caller_rbp::AT_CFA && slot == 2 {
                    // The saved rbp is right below the return address.
                    return pair_step(cfa, walk, world);
                }
                let rbp_at = cfa.wrapping_sub(u64::from(slot) * 8);
                let is_saved = rule.saved() == caller_rbp::AT_CFA;
                finish(cfa, is_saved, rbp_at, walk, world)
            }
        }
    }

    #[inline(always)]
    fn is_plain(rule: u32, _links: u32) -> bool {
        // Neither special nor extended.
        rule & kind::SPECIAL == 0
    }

    #[inline(always)]
    fn return_below(_rule: u32) -> u64 {
        8
    }

    #[inline(always)]
    fn saves_bp(rule: u32) -> bool {
        rule & (3 << 18) != 0
    }

    #[inline(always)]
    fn bp_below(rule: u32) -> u64 {
        (rule >> 20) as u64 * 8
    }
}

const _: () = assert!(caller_rbp::AT_CFA == 1 && kind::EXTENDED & kind::SPECIAL != 0);

#[inline(always)]
fn pair_step<W: World>(cfa: u64, walk: &mut Walk, world: &mut W) -> u32 {
    if cfa <= walk.registers.sp {
        return status::STUCK;
    }
    let Some((bp, ip)) = world.read_pair(cfa.wrapping_sub(16)) else {
        return status::READ_FAULT;
    };
    return_to(ip, cfa, bp, walk)
}

/// Takes the step: reads the return address and, if it was saved, rbp, from where the rule says
/// they are.
#[inline(always)]
fn finish<W: World>(cfa: u64, is_saved: bool, rbp_at: u64, walk: &mut Walk, world: &mut W) -> u32 {
    if cfa <= walk.registers.sp {
        return status::STUCK;
    }
    let Some(ip) = world.read(cfa.wrapping_sub(8)) else {
        return status::READ_FAULT;
    };
    let mut bp = walk.registers.bp;
    if is_saved {
        let Some(saved) = world.read(rbp_at) else {
            return status::READ_FAULT;
        };
        bp = saved;
    }
    return_to(ip, cfa, bp, walk)
}

#[inline(always)]
fn special_step<W: World>(which: u32, walk: &mut Walk, world: &mut W) -> u32 {
    let registers = walk.registers;
    match which {
        special::FRAME_POINTER | special::NO_TABLE => {
            by_frame_pointer::<X86_64, W>(which, walk, world)
        }
        special::SIGNAL => signal_step(walk, world),
        special::STACK_SWITCH => switch_step(walk, world),
        special::END => status::END,
        plt if plt >= special::PLT => {
            let is_pushed = registers.ip & 15 >= u64::from(plt - special::PLT);
            let pushed = if is_pushed { 8 } else { 0 };
            finish(registers.sp.wrapping_add(8 + pushed), false, 0, walk, world)
        }
        _ => status::UNSUPPORTED,
    }
}

/// Steps to a caller on another stack, which may be anywhere in memory. Only the limit of
/// frames guarantees that the walk ends.
#[inline(always)]
fn switch_step<W: World>(walk: &mut Walk, world: &mut W) -> u32 {
    let at = walk.registers.bp;
    if at == 0 {
        return status::END;
    }
    let Some((bp, ip)) = world.read_pair(at) else {
        return status::SWITCHED;
    };
    return_to(ip, at.wrapping_add(16), bp, walk)
}

/// Steps to the interrupted function. The kernel has put a `ucontext` on the stack, with
/// the registers at fixed places (`arch/x86/include/uapi/asm/sigcontext.h`). The signal
/// stack may be below or above the interrupted one.
#[inline(always)]
fn signal_step<W: World>(walk: &mut Walk, world: &mut W) -> u32 {
    const RBP: u64 = 120;
    const RSP: u64 = 160;
    let sp = walk.registers.sp;
    let (Some(bp), Some((caller_sp, ip))) = (
        world.read(sp.wrapping_add(RBP)),
        world.read_pair(sp.wrapping_add(RSP)),
    ) else {
        return status::READ_FAULT;
    };
    walk.is_exact = 1;
    return_to(ip, caller_sp, bp, walk)
}

#[inline(always)]
fn extended_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    let sp = walk.registers.sp;
    let from = match rule.base {
        base::RSP => sp,
        base::RBP => walk.registers.bp,
        base::RBX if walk.rbx_at == sp => walk.rbx,
        base::CGO_CALL => return go::cgo_step(rule, walk, world),
        base::GOROUTINE => return go::goroutine_step(rule, walk, world),
        // After a call, these registers hold values of the callee.
        _ if walk.is_leaf == 0 => return status::UNSUPPORTED,
        other => {
            let index = other.wrapping_sub(base::R10) as usize;
            match walk.scratch.get(index) {
                Some(value) => *value,
                None => return status::UNSUPPORTED,
            }
        }
    };
    if rule.deref == deref::RETURN {
        let sp = sp.wrapping_add(i64::from(rule.offset) as u64);
        return return_to(from, sp, walk.registers.bp, walk);
    }
    let mut cfa = from.wrapping_add(i64::from(rule.offset) as u64);
    if rule.deref != deref::NO {
        let Some(value) = world.read(cfa) else {
            return status::READ_FAULT;
        };
        cfa = value;
    }
    cfa = cfa.wrapping_add(i64::from(rule.addend) as u64);
    let step = finish_extended(rule, cfa, walk, world);
    if step == status::CALLER && rule.caller_rbx != extended_rbx::LOST && walk.rbx_at == sp {
        follow_rbx(rule.caller_rbx, cfa, walk, world);
    }
    step
}

#[inline(always)]
fn finish_extended<W: World>(rule: &Extended, cfa: u64, walk: &mut Walk, world: &mut W) -> u32 {
    let near = if rule.caller_rbp == extended_rbp::AT_RBP {
        walk.registers.bp
    } else {
        cfa
    };
    let rbp_at = near.wrapping_add(i64::from(rule.rbp_offset) as u64);
    let is_saved = rule.caller_rbp != extended_rbp::SAME;
    finish(cfa, is_saved, rbp_at, walk, world)
}

/// Makes rbx the caller's; the other registers are the caller's already.
#[inline(always)]
fn follow_rbx<W: World>(slot: u8, cfa: u64, walk: &mut Walk, world: &mut W) {
    if slot >= extended_rbx::AT_CFA {
        let Some(rbx) = world.read(cfa.wrapping_sub(u64::from(slot) * 8)) else {
            return;
        };
        walk.rbx = rbx;
    }
    walk.rbx_at = walk.registers.sp;
}

#[cfg(test)]
mod tests;
