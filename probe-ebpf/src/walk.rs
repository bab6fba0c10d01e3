//! The walk of a stack, one frame at a time, by unwind tables where there are
//! some and by frame pointers where there are none.
//!
//! For each frame, from the interrupted one outwards:
//!
//! 1. The pc to look up is the interrupted instruction itself (`is_exact`), else the
//!    byte before the return address: a call may be a function's last instruction.
//! 2. [`rule_for`] finds its mapping, and in the mapping's table its [`Rule`]. A process
//!    that is not published has no mappings: every rule is "no table" then.
//! 3. [`step`] takes the rule from the frame to its caller, or says by a [`status`] why
//!    not; then nothing has changed. The caller's frame is always above this one, but
//!    for signals and changes of stack: a table that says otherwise ends the walk.
//! 4. Where there is no table, or the table has a gap, the step is by frame pointer.
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
//! The same code runs in BPF on a live stack and on the host on a copied one;
//! what differs is the [`World`] it reads. Everything it knows lies in a
//! [`Walk`], which BPF keeps in a map, so that the verifier takes each value for
//! unknown and looks at a frame once.

mod go;

use crate::frame_pointer;
use crate::registers::{Registers, SCRATCH_REGISTERS, scratch};
use crate::rule::{
    Extended, Rule, base, caller_rbp, deref, extended_rbp, extended_rbx, kind, special,
};
use crate::status;
use crate::table::{
    Mapping, NO_BLOCK, NO_TABLE, PAGE_SHIFT, PROCESS_MAPPINGS_MAX, Words as _, find_rule, less_than,
};
use crate::world::World;

/// A walk under way. It must begin with a mapping that has no table.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Walk {
    /// Of the frame that is looked at.
    pub registers: Registers,
    /// The mapping of the last pc: most often the next one's as well.
    pub mapping: Mapping,
    /// The process's mappings; none at all if they are not known yet.
    pub first: u32,
    /// How many mappings the process has, from number `first` on.
    pub length: u32,
    /// The next pc is where the thread was interrupted, not behind a call.
    pub is_exact: u32,
    /// The frame is the interrupted one: all its registers are known.
    pub is_leaf: u32,
    /// Frame pointers followed since the last step by a table.
    pub links: u32,
    /// A [`status`].
    pub status: u32,
    /// rbx of the frame whose stack pointer is `rbx_at`. Frames have different
    /// ones, so that steps that do not follow rbx need not say so.
    pub rbx: u64,
    /// The stack pointer of the frame that `rbx` is of.
    pub rbx_at: u64,
    /// Registers of the interrupted function that its own rule may need.
    pub scratch: [u64; SCRATCH_REGISTERS],
}

impl Walk {
    /// Makes rbx known, that of the interrupted function.
    #[inline(always)]
    pub fn begin_rbx(&mut self) {
        self.rbx = self.scratch[scratch(base::RBX)];
        self.rbx_at = self.registers.sp;
    }
}

/// The rule for `pc`, or `None` if no mapping holds it.
#[inline(always)]
pub fn rule_for<W: World>(walk: &mut Walk, world: &W, pc: u64) -> Option<Rule> {
    if walk.length == 0 {
        return Some(Rule::special(special::NO_TABLE));
    }
    if !find_mapping(walk, world, pc) {
        return None;
    }
    Some(table_rule(&walk.mapping, world, pc))
}

/// Makes `walk.mapping` the one that holds `pc`.
#[inline(always)]
fn find_mapping<W: World>(walk: &mut Walk, world: &W, pc: u64) -> bool {
    if pc >= walk.mapping.start && pc < walk.mapping.end {
        return true;
    }
    if pc as i64 <= 0 {
        return false;
    }
    // The last mapping that begins at `pc` or below.
    let mut low = u64::from(walk.first);
    let mut length = u64::from(walk.length);
    for _ in 0..MAPPING_PROBES_MAX {
        if length <= 1 {
            break;
        }
        let half = length >> 1;
        let start = world.mapping_start((low + half) as u32);
        low += half & !less_than(pc, start);
        length -= half;
    }
    world.load_mapping(low as u32, &mut walk.mapping);
    pc >= walk.mapping.start && pc < walk.mapping.end
}

const MAPPING_PROBES_MAX: u32 = PROCESS_MAPPINGS_MAX.ilog2() + 2;

#[inline(always)]
fn table_rule<W: World>(mapping: &Mapping, world: &W, pc: u64) -> Rule {
    if mapping.table == NO_TABLE {
        return Rule::special(special::NO_TABLE);
    }
    let no_information = Rule::special(special::FRAME_POINTER);
    let address = pc.wrapping_sub(mapping.bias) as u32;
    let page = (address >> PAGE_SHIFT).wrapping_sub(mapping.first_page);
    if page >= mapping.pages {
        return no_information;
    }
    let number = mapping.table.wrapping_add(page);
    let Some(index) = world.chunk(number) else {
        return no_information;
    };
    let block = index.word(number);
    if block == NO_BLOCK {
        return no_information;
    }
    let Some(words) = world.chunk(block) else {
        return no_information;
    };
    world.rule(find_rule(&words, block, address))
}

/// One step by `rule`. On [`status::CALLER`] the registers are the caller's;
/// else nothing has changed.
#[inline(always)]
pub fn step<W: World>(rule: Rule, walk: &mut Walk, world: &mut W) -> u32 {
    match rule.kind() {
        kind::SPECIAL => special_step(rule.offset(), walk, world),
        kind::EXTENDED => {
            let extended = world.extended(rule.offset());
            extended_step(&extended, walk, world)
        }
        which => {
            let from = if which == kind::RBP {
                walk.registers.bp
            } else {
                walk.registers.sp
            };
            let cfa = from.wrapping_add(u64::from(rule.offset()) * 8);
            let slot = rule.slot();
            if rule.caller_rbp() == caller_rbp::AT_CFA && slot == 2 {
                // The saved rbp is right below the return address.
                return pair_step(cfa, walk, world);
            }
            let rbp_at = cfa.wrapping_sub(u64::from(slot) * 8);
            let is_saved = rule.caller_rbp() == caller_rbp::AT_CFA;
            finish(cfa, is_saved, rbp_at, walk, world)
        }
    }
}

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

/// Reads what the rule has located: the return address and, if it was saved,
/// rbp.
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
fn return_to(ip: u64, sp: u64, bp: u64, walk: &mut Walk) -> u32 {
    if ip == 0 {
        return status::END;
    }
    walk.registers.ip = ip;
    walk.registers.sp = sp;
    walk.registers.bp = bp;
    walk.links = 0;
    status::CALLER
}

#[inline(always)]
fn special_step<W: World>(which: u32, walk: &mut Walk, world: &mut W) -> u32 {
    let registers = walk.registers;
    match which {
        special::FRAME_POINTER | special::NO_TABLE => {
            // A caller that has no unwind information, in a file that has some:
            // what is written by hand to begin a process or a thread. The ABI
            // has it begin with rbp zero, and the tables kept track of rbp.
            if which == special::FRAME_POINTER && registers.bp == 0 && walk.is_leaf == 0 {
                return status::END;
            }
            let step = frame_pointer::step(&mut walk.registers, world);
            if step == status::CALLER {
                walk.links += 1;
            }
            step
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

/// The caller's stack may be anywhere; that the walk ends all the same is for
/// the number of frames to see to.
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

/// The kernel has put a `ucontext` on the stack; its registers are at fixed
/// places (`arch/x86/include/uapi/asm/sigcontext.h`). The signal stack may be
/// below or above the interrupted one.
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
        // Whatever a call leaves in them is not the caller's.
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

/// The registers are the caller's already; now rbx is as well.
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

/// One frame, any kind: finds the rule for the pc and takes the step. The
/// registers before it are those of the frame that is to be recorded.
#[inline(always)]
pub fn frame<W: World>(rule: Option<Rule>, walk: &mut Walk, world: &mut W) -> u32 {
    walk.is_exact = 0;
    let status = match rule {
        Some(rule) => step(rule, walk, world),
        None => status::NO_MAPPING,
    };
    walk.is_leaf = 0;
    walk.status = status;
    status
}

#[cfg(test)]
mod tests;
