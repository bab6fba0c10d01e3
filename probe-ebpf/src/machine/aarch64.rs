//! The step on AArch64.
//!
//! ```text
//!   higher addresses
//!   │ caller's locals   │
//!   ├───────────────────┤ ◄ cfa = sp or x29 + offset: the caller's sp
//!   │ locals            │
//!   │ x30: return       │   a pair, most often: the frame record
//!   │ x29: caller's     │   cfa - 8 * slot, where x29 points to from then on
//!   │ callee's locals   │
//!   └───────────────────┘ ◄ sp
//! ```
//!
//! A call leaves the return address in x30 (the link register), so that a function which calls
//! no other may save nothing: then its frame may be empty, and the caller's stack pointer equals
//! its own. x30 is known in a function that was interrupted, also by a signal; in any other the
//! last call has overwritten it. Saved return addresses may be signed (pointer authentication):
//! the signature is in the bits above the address.
//!
//! A step by frame pointer finds the caller's frame record, but not its stack pointer, which is
//! somewhere above the callee's record. As long as the stack pointer is not known
//! ([`Walk::links`] is not 0), the address of the frame record takes its place.

mod go;

use crate::registers::{Registers, scratch};
use crate::rule::aarch64::{Frame, base, saved};
use crate::rule::{Rule, base as any_base, kind, special};
use crate::status;
use crate::walk::{Machine, Walk, by_frame_pointer, return_to};
use crate::world::World;

/// The 64-bit Arm architecture.
#[derive(Debug, Clone, Copy)]
pub struct Aarch64;

/// Index of the link register in [`Walk::scratch`].
const X30: usize = scratch(base::X30);

/// Index of x28, in which Go keeps the goroutine that runs.
const X28: usize = scratch(base::X28);

impl Machine for Aarch64 {
    /// Programs have 48 bits of addresses unless they ask for more. Signatures are in the bits
    /// above, up to bit 54.
    const ADDRESS_BITS: u64 = (1 << 48) - 1;

    /// Go saves x29 in the word below the stack pointer and x30 at it. In each Go function x29 is
    /// the stack pointer less a word; so that of the caller is the CFA less a word.
    #[inline(always)]
    fn saved_below_sp(rule: Rule, registers: &Registers) -> Option<u64> {
        let is_go = rule.saved() == saved::PAIR && rule.slot() == rule.offset() + 1;
        let cfa = (registers.sp).wrapping_add(u64::from(rule.offset()) * 8);
        (rule.kind() == kind::SP && is_go).then_some(cfa.wrapping_sub(8))
    }

    #[inline(always)]
    fn begin(_walk: &mut Walk) {}

    #[inline(always)]
    fn step<W: World>(rule: Rule, is_exact: bool, walk: &mut Walk, world: &mut W) -> u32 {
        match rule.kind() {
            kind::SPECIAL => special_step(rule.offset(), is_exact, walk, world),
            kind::EXTENDED => {
                let extended = world.extended(rule.offset());
                if extended.base == any_base::GOROUTINE {
                    return go::goroutine_step(&extended, walk, world);
                }
                frame_step(&Frame::unpack(&extended), is_exact, walk, world)
            }
            which => word_step(rule, which, is_exact, walk, world),
        }
    }

    #[inline(always)]
    fn is_plain(rule: u32, links: u32) -> bool {
        let saved = rule >> 18 & 3;
        let is_saved = saved == saved::PAIR || saved == saved::LINK;
        rule & kind::SPECIAL == 0 && is_saved && (links == 0 || rule & kind::BP != 0)
    }

    #[inline(always)]
    fn return_below(rule: u32) -> u64 {
        let above = if rule >> 18 & 3 == saved::PAIR { 8 } else { 0 };
        ((rule >> 20) as u64 * 8).wrapping_sub(above)
    }

    #[inline(always)]
    fn saves_bp(rule: u32) -> bool {
        rule >> 18 & 3 == saved::PAIR
    }

    #[inline(always)]
    fn bp_below(rule: u32) -> u64 {
        (rule >> 20) as u64 * 8
    }
}

#[inline(always)]
fn word_step<W: World>(
    rule: Rule,
    which: u32,
    is_exact: bool,
    walk: &mut Walk,
    world: &mut W,
) -> u32 {
    let saved = rule.saved();
    let below = u64::from(rule.slot()) * 8;
    let (from, offset) = if which == kind::BP {
        (walk.registers.bp, u64::from(rule.offset()) * 8)
    } else if walk.links == 0 {
        (walk.registers.sp, u64::from(rule.offset()) * 8)
    } else if saved == saved::PAIR {
        // A function that saved x29 and x30 beside each other, and calls another, has x29 point
        // to them (AAPCS64, 6.4.6).
        (walk.registers.bp, below)
    } else {
        return status::IMPLAUSIBLE;
    };
    let cfa = from.wrapping_add(offset);
    if saved == saved::NOTHING {
        return return_by_link(cfa, walk.registers.bp, is_exact, walk);
    }
    if cfa <= walk.registers.sp {
        return status::STUCK;
    }
    let at = cfa.wrapping_sub(below);
    if saved == saved::PAIR {
        let Some((bp, link)) = world.read_pair(at) else {
            return status::READ_FAULT;
        };
        return return_to(link & Aarch64::ADDRESS_BITS, cfa, bp, walk);
    }
    if saved != saved::LINK {
        return status::UNSUPPORTED;
    }
    let Some(link) = world.read(at) else {
        return status::READ_FAULT;
    };
    return_to(link & Aarch64::ADDRESS_BITS, cfa, walk.registers.bp, walk)
}

/// Takes the step if the return address is still in x30, which is not so after a call.
#[inline(always)]
fn return_by_link(cfa: u64, bp: u64, is_exact: bool, walk: &mut Walk) -> u32 {
    let sp = walk.registers.sp;
    if cfa < sp || cfa == sp && !is_exact {
        return status::STUCK;
    }
    if !is_exact {
        return status::UNSUPPORTED;
    }
    let link = walk.scratch[X30] & Aarch64::ADDRESS_BITS;
    return_to(link, cfa, bp, walk)
}

#[inline(always)]
fn frame_step<W: World>(frame: &Frame, is_exact: bool, walk: &mut Walk, world: &mut W) -> u32 {
    let from = match frame.base {
        base::SP if walk.links != 0 => return status::IMPLAUSIBLE,
        base::SP => walk.registers.sp,
        base::X29 => walk.registers.bp,
        // After a call, these registers hold values of the callee.
        _ if walk.is_leaf == 0 => return status::UNSUPPORTED,
        other => {
            let index = other.wrapping_sub(base::X30) as usize;
            match walk.scratch.get(index) {
                Some(value) => *value,
                None => return status::UNSUPPORTED,
            }
        }
    };
    let cfa = from.wrapping_add(i64::from(frame.offset) as u64);
    let mut bp = walk.registers.bp;
    if let Some(at) = frame.x29 {
        let Some(saved) = world.read(cfa.wrapping_add(i64::from(at) as u64)) else {
            return status::READ_FAULT;
        };
        bp = saved;
    }
    let Some(at) = frame.x30 else {
        return return_by_link(cfa, bp, is_exact, walk);
    };
    if cfa <= walk.registers.sp {
        return status::STUCK;
    }
    let Some(link) = world.read(cfa.wrapping_add(i64::from(at) as u64)) else {
        return status::READ_FAULT;
    };
    return_to(link & Aarch64::ADDRESS_BITS, cfa, bp, walk)
}

#[inline(always)]
fn special_step<W: World>(which: u32, is_exact: bool, walk: &mut Walk, world: &mut W) -> u32 {
    match which {
        special::LINK if is_exact => {
            let link = walk.scratch[X30] & Aarch64::ADDRESS_BITS;
            let (sp, bp) = (walk.registers.sp, walk.registers.bp);
            let step = return_to(link, sp, bp, walk);
            if step == status::CALLER {
                walk.links = 1;
            }
            step
        }
        special::FRAME_POINTER | special::LINK => {
            by_frame_pointer::<Aarch64, W>(special::FRAME_POINTER, walk, world)
        }
        special::NO_TABLE => by_frame_pointer::<Aarch64, W>(special::NO_TABLE, walk, world),
        special::SIGNAL => signal_step(walk, world),
        special::STACK_SWITCH => switch_step(walk, world),
        special::END => status::END,
        _ => status::UNSUPPORTED,
    }
}

/// Steps to a frame record on another stack, which may be anywhere in memory. Only the limit of
/// frames guarantees that the walk ends.
#[inline(always)]
fn switch_step<W: World>(walk: &mut Walk, world: &mut W) -> u32 {
    let at = walk.registers.bp;
    if at == 0 {
        return status::END;
    }
    let Some((bp, link)) = world.read_pair(at) else {
        return status::SWITCHED;
    };
    let sp = at.wrapping_add(16);
    let step = return_to(link & Aarch64::ADDRESS_BITS, sp, bp, walk);
    if step == status::CALLER {
        walk.links = 1;
    }
    step
}

/// Steps to the interrupted function. The kernel has put a `struct rt_sigframe` on the stack
/// (arch/arm64/kernel/signal.c), with the registers at fixed places (sigcontext.h in
/// arch/arm64/include/uapi/asm). The signal stack may be below or above the interrupted one.
#[inline(always)]
fn signal_step<W: World>(walk: &mut Walk, world: &mut W) -> u32 {
    const X29_AND_X30: u64 = 544;
    const SP_AND_PC: u64 = 560;
    let sp = walk.registers.sp;
    if walk.links != 0 {
        // After a step by frame pointer, a frame record is known, but not where the sigframe is.
        return status::IMPLAUSIBLE;
    }
    let (Some((bp, link)), Some((caller_sp, ip))) = (
        world.read_pair(sp.wrapping_add(X29_AND_X30)),
        world.read_pair(sp.wrapping_add(SP_AND_PC)),
    ) else {
        return status::READ_FAULT;
    };
    walk.scratch[X30] = link;
    walk.is_exact = 1;
    return_to(ip, caller_sp, bp, walk)
}

#[cfg(test)]
mod tests;
