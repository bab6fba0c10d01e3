//! The walk of a stack, one frame at a time, by unwind tables where there are
//! some and by frame pointers where there are none. What a rule means is a matter of
//! the [`Machine`], and so the step is: `machine/x86_64.rs` and `machine/aarch64.rs`.
//!
//! For each frame, from the interrupted one outwards:
//!
//! 1. The pc to look up is the interrupted instruction itself (`is_exact`), else the
//!    byte before the return address: a call may be a function's last instruction.
//! 2. [`rule_for`] finds its mapping, and in the mapping's table its [`Rule`]. A process
//!    whose mappings are not published has none: every rule is "no table" then.
//! 3. [`Machine::step`] applies the rule to get from the frame to its caller, or returns by a
//!    [`status`] why it cannot; then nothing has changed. The caller's frame is always above this
//!    one, but for signals and changes of stack: a table that says otherwise ends the walk.
//! 4. Where there is no table, or the table has a gap, the step is by frame pointer.
//!
//! The same code runs in BPF on a live stack and in user space on a copied one; only
//! the [`World`] that it reads differs. All its state lies in a [`Walk`], which BPF
//! keeps in a map, so that the verifier takes each value for unknown and checks the
//! code for a frame once.

use crate::frame_pointer;
use crate::registers::{Registers, SCRATCH_REGISTERS};
use crate::rule::{Rule, special};
use crate::status;
use crate::table::{
    Mapping, NO_BLOCK, NO_TABLE, PAGE_SHIFT, PROCESS_MAPPINGS_MAX, Words as _, find_rule, less_than,
};
use crate::world::World;

/// A walk under way. It must begin with a mapping that has no table.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Walk {
    /// The registers in the frame that the walk has reached.
    pub registers: Registers,
    /// The mapping of the last pc: most often that of the next one as well.
    pub mapping: Mapping,
    /// The number of the process's first mapping in the list of all mappings.
    pub first: u32,
    /// How many mappings the process has from `first` on; 0 if they are not known yet.
    pub length: u32,
    /// 1 if the next pc is where the thread was interrupted, and not behind a call.
    pub is_exact: u32,
    /// 1 if the frame is the interrupted one: all its registers are known.
    pub is_leaf: u32,
    /// The number of steps by frame pointer since the last step by a table.
    pub links: u32,
    /// The result of the last step: a [`status`].
    pub status: u32,
    /// rbx in the frame whose stack pointer is `rbx_at`. Frames have different stack
    /// pointers, so a step that does not track rbx need not change these two fields.
    pub rbx: u64,
    /// The stack pointer of the frame that `rbx` belongs to.
    pub rbx_at: u64,
    /// Registers of the interrupted function that its own rule may need.
    pub scratch: [u64; SCRATCH_REGISTERS],
}

/// A processor architecture: how a frame of its code leads to the caller's frame.
pub trait Machine {
    /// The bits of a return address that are the address. The other bits may hold a
    /// signature of it.
    const ADDRESS_BITS: u64;

    /// Returns the caller's frame pointer, if an interrupted function with these registers has it
    /// below its stack pointer by this rule, and it can be known without a read there: copies of
    /// stacks begin at the stack pointer. Else returns None.
    fn saved_below_sp(rule: Rule, registers: &Registers) -> Option<u64>;

    /// Sets the fields that only this architecture uses from the registers of the
    /// interrupted function.
    fn begin(walk: &mut Walk);

    /// Takes one step by `rule`. On [`status::CALLER`] the registers are the caller's; else
    /// nothing has changed. `is_exact`: the frame was interrupted, and did not call.
    fn step<W: World>(rule: Rule, is_exact: bool, walk: &mut Walk, world: &mut W) -> u32;

    /// Returns whether a rule, given as its word, counts from a register only and finds the return
    /// address in memory: such a step is worth a short cut. `links` is that of the [`Walk`].
    fn is_plain(rule: u32, links: u32) -> bool;

    /// Returns how far below the CFA the return address is by a plain rule, in bytes.
    fn return_below(rule: u32) -> u64;

    /// Returns whether the caller's frame pointer was saved by a plain rule.
    fn saves_bp(rule: u32) -> bool;

    /// Returns how far below the CFA a plain rule saves the frame pointer, in bytes.
    fn bp_below(rule: u32) -> u64;
}

/// Returns the rule for `pc`. Returns None if no mapping holds `pc`.
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

/// Makes `walk.mapping` the one that holds `pc`. Returns false if there is none.
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

/// Makes the registers the caller's, whose stack pointer is known. An `ip` of 0 ends the walk.
#[inline(always)]
pub(crate) fn return_to(ip: u64, sp: u64, bp: u64, walk: &mut Walk) -> u32 {
    if ip == 0 {
        return status::END;
    }
    walk.registers.ip = ip;
    walk.registers.sp = sp;
    walk.registers.bp = bp;
    walk.links = 0;
    status::CALLER
}

/// Takes the step where there is no rule: `which` is [`special::FRAME_POINTER`] or
/// [`special::NO_TABLE`].
#[inline(always)]
pub(crate) fn by_frame_pointer<M: Machine, W: World>(
    which: u32,
    walk: &mut Walk,
    world: &mut W,
) -> u32 {
    // A caller without unwind information, in a file that has some, is code written by hand
    // that begins a process or a thread. By the ABI it begins with a frame pointer of zero, and
    // the tables have kept track of it.
    if which == special::FRAME_POINTER && walk.registers.bp == 0 && walk.is_leaf == 0 {
        return status::END;
    }
    let step = frame_pointer::step(&mut walk.registers, M::ADDRESS_BITS, world);
    if step == status::CALLER {
        walk.links += 1;
    }
    step
}

/// Takes the step of one frame by the rule for its pc, if there is one. The registers
/// before the step are those of the frame that is to be recorded.
#[inline(always)]
pub fn frame<M: Machine, W: World>(rule: Option<Rule>, walk: &mut Walk, world: &mut W) -> u32 {
    let is_exact = walk.is_exact != 0;
    walk.is_exact = 0;
    let status = match rule {
        Some(rule) => M::step(rule, is_exact, walk, world),
        None => status::NO_MAPPING,
    };
    walk.is_leaf = 0;
    walk.status = status;
    status
}

#[cfg(test)]
mod tests;
