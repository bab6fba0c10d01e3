//! The walk of a stack, one frame at a time, by unwind tables where there are
//! some and by frame pointers where there are none.
//!
//! The same code runs in BPF on a live stack and on the host on a copied one;
//! what differs is the [`World`] it reads. Everything it knows lies in a
//! [`Walk`], which BPF keeps in a map, so that the verifier takes each value for
//! unknown and looks at a frame once.

use crate::frame_pointer;
use crate::record::Ending;
use crate::rule::{
    Extended, Rule, base, caller_rbp, deref, extended_rbp, extended_rbx, kind, special,
};
use crate::table::{
    Mapping, NO_BLOCK, NO_TABLE, PAGE_SHIFT, PROCESS_MAPPINGS_MAX, Words, find_rule, less_than,
};

/// The registers that a walk needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
}

/// The other registers of the interrupted function: by [`base`] minus
/// [`base::R10`].
pub const SCRATCH_REGISTERS: usize = 14;

/// Where a register is among them.
pub const fn scratch(base: u8) -> usize {
    (base - base::R10) as usize
}

/// A walk under way. It must begin with a mapping that has no table.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Walk {
    pub registers: Registers,
    /// The mapping of the last pc: most often the next one's as well.
    pub mapping: Mapping,
    /// The process's mappings; none at all if they are not known yet.
    pub first: u32,
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
    pub rbx_at: u64,
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

/// How a step went: plain numbers, because an enum with data costs the verifier
/// more than all the rest.
pub mod status {
    /// The registers are those of the caller now.
    pub const CALLER: u32 = 0;
    /// The thread's first function.
    pub const END: u32 = 1;
    /// The frame pointer is zero.
    pub const CHAIN_END: u32 = 2;
    /// The table says what is not supported.
    pub const UNSUPPORTED: u32 = 3;
    /// The stack cannot be read there.
    pub const READ_FAULT: u32 = 4;
    /// A frame pointer that points where no frame can be.
    pub const IMPLAUSIBLE: u32 = 5;
    /// The caller's frame is not above this one: a table that lies.
    pub const STUCK: u32 = 6;
    /// The pc is in no mapping that is known.
    pub const NO_MAPPING: u32 = 7;
    /// There is no user stack: a kernel thread.
    pub const NO_STACK: u32 = 8;
    /// A 32-bit task.
    pub const COMPAT_32: u32 = 9;
    /// The task is on its way out: its memory is being taken down.
    pub const EXITING: u32 = 10;
    /// The caller has another stack, and where that is cannot be told.
    pub const SWITCHED: u32 = 11;
}

/// What a walk reads.
pub trait World {
    type Chunk: Words;

    /// The word at `address` of the thread's memory.
    fn read(&mut self, address: u64) -> Option<u64>;
    /// The same, 0 where nothing can be read: for words that are judged together
    /// afterwards. Each branch in between would cost the verifier another path.
    fn read_or_zero(&mut self, address: u64) -> u64 {
        self.read(address).unwrap_or(0)
    }
    /// Two words, the lower first.
    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)>;
    /// Where a mapping begins, by its number in the list of all.
    fn mapping_start(&self, number: u32) -> u64;
    fn load_mapping(&self, number: u32, into: &mut Mapping);
    /// The chunk that holds the word with this number.
    fn chunk(&self, number: u32) -> Option<Self::Chunk>;
    fn rule(&self, index: u16) -> Rule;
    fn extended(&self, index: u32) -> Extended;
}

/// The rule for `pc`, or nothing if no mapping holds it.
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
        base::CGO_CALL => return cgo_step(rule, walk, world),
        base::GOROUTINE => return goroutine_step(rule, walk, world),
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

/// From C to the goroutine that called it, see [`base::CGO_CALL`].
#[inline(always)]
fn cgo_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    /// Of the stack's end in `runtime.g`.
    const STACK_END: u64 = 8;
    let at = walk
        .registers
        .sp
        .wrapping_add(i64::from(rule.offset) as u64);
    let depth = world.read_or_zero(at.wrapping_sub(8));
    let goroutine = world.read_or_zero(at);
    let end = world.read_or_zero(goroutine.wrapping_add(STACK_END));
    // Without a goroutine there is nothing to read, and nothing to count from.
    let from = if goroutine == 0 {
        depth
    } else {
        end.wrapping_sub(depth)
    };
    let cfa = from.wrapping_add(i64::from(rule.addend) as u64);
    let Some((bp, ip)) = world.read_pair(cfa.wrapping_sub(16)) else {
        return status::SWITCHED;
    };
    let bp = if rule.caller_rbp == extended_rbp::AT_CFA {
        bp
    } else {
        walk.registers.bp
    };
    return_to(ip, cfa, bp, walk)
}

/// From the runtime to the goroutine that it works for, see
/// [`base::GOROUTINE`]. Go code has its `runtime.g` in r14; here that must be
/// the one of the thread's own stack, or r14 is something else.
#[inline(always)]
fn goroutine_step<W: World>(rule: &Extended, walk: &mut Walk, world: &mut W) -> u32 {
    // In `runtime.g`: the stack, the thread, and what a switch saves; see
    // src/runtime/runtime2.go.
    const THREAD: u64 = 48;
    const SAVED_SP: u64 = 56;
    let own = walk.scratch[scratch(base::R14)];
    let thread = world.read_or_zero(own.wrapping_add(THREAD));
    let of_thread = world.read_or_zero(thread);
    let current = world.read_or_zero(thread.wrapping_add(i64::from(rule.offset) as u64));
    let low = world.read_or_zero(current);
    let high = world.read_or_zero(current.wrapping_add(8));
    let sp = world.read_or_zero(current.wrapping_add(SAVED_SP));
    let saved_ip = world.read_or_zero(current.wrapping_add(SAVED_SP + 8));
    let bp = world.read_or_zero(current.wrapping_add(i64::from(rule.rbp_offset) as u64));
    let pushed_ip = world.read_or_zero(sp);
    if own == 0 || of_thread != own || current == own {
        return status::SWITCHED;
    }
    if current == 0 {
        // Let go of: the scheduler works for itself.
        return status::END;
    }
    if sp < low || sp >= high {
        return status::SWITCHED;
    }
    let is_pushed = rule.deref != 0;
    let ip = if is_pushed { pushed_ip } else { saved_ip };
    let popped = if is_pushed { 8 } else { 0 };
    return_to(ip, sp.wrapping_add(popped), bp, walk)
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

/// What the last status means for a walk of so many frames, the last `links` of
/// them by frame pointer.
pub fn ending(status: u32, links: u32, frames: u32) -> Ending {
    match status {
        status::CALLER => Ending::TooDeep,
        status::END => Ending::Root,
        status::UNSUPPORTED => Ending::Unsupported,
        status::STUCK => Ending::Stuck,
        status::NO_STACK => Ending::NoUserStack,
        status::COMPAT_32 => Ending::Compat32,
        status::EXITING => Ending::Exiting,
        status::SWITCHED => Ending::StackSwitch,
        // By frame pointers: a chain that fails at its first link never was one.
        // The interrupted code uses rbp for something else, whatever it holds.
        status::CHAIN_END if links > 0 => Ending::Root,
        status::CHAIN_END | status::IMPLAUSIBLE if links == 0 => Ending::NoFramePointer,
        status::NO_MAPPING if links == 0 || frames <= 1 => Ending::NoMapping,
        status::READ_FAULT => Ending::ReadFault,
        _ => Ending::BrokenChain,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// A stack of words from 0x7000 upwards, and rules by pc instead of tables.
    pub struct Stack<'a> {
        words: &'a [u64],
        pub extended: Extended,
    }

    impl<'a> Stack<'a> {
        pub const BASE: u64 = 0x7000;

        pub fn new(words: &'a [u64]) -> Self {
            Self {
                words,
                extended: Extended::default(),
            }
        }
    }

    pub struct NoChunk;

    impl Words for NoChunk {
        fn word(&self, _: u32) -> u32 {
            0
        }
    }

    impl World for Stack<'_> {
        type Chunk = NoChunk;

        fn read(&mut self, address: u64) -> Option<u64> {
            let offset = address.checked_sub(Self::BASE)?;
            self.words.get((offset / 8) as usize).copied()
        }

        fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
            Some((self.read(address)?, self.read(address + 8)?))
        }

        fn mapping_start(&self, _: u32) -> u64 {
            0
        }

        fn load_mapping(&self, _: u32, _: &mut Mapping) {}

        fn chunk(&self, _: u32) -> Option<NoChunk> {
            None
        }

        fn rule(&self, _: u16) -> Rule {
            Rule::special(special::UNSUPPORTED)
        }

        fn extended(&self, _: u32) -> Extended {
            self.extended
        }
    }

    fn at(sp: u64, bp: u64) -> Walk {
        let registers = Registers {
            ip: 0x40_1008,
            sp,
            bp,
        };
        Walk {
            registers,
            is_leaf: 1,
            is_exact: 1,
            ..Walk::default()
        }
    }

    fn check(
        rule: Rule,
        mut walk: Walk,
        mut stack: Stack<'_>,
        expected: Result<(u64, u64, u64), u32>,
    ) -> Walk {
        let before = walk.registers;
        let status = frame(Some(rule), &mut walk, &mut stack);
        match expected {
            Ok((ip, sp, bp)) => {
                assert_eq!(status, status::CALLER);
                assert_eq!(walk.registers, Registers { ip, sp, bp });
            }
            Err(expected) => {
                assert_eq!(status, expected);
                assert_eq!(walk.registers, before, "a failed step changes nothing");
            }
        }
        walk
    }

    #[test]
    fn cfa_from_rsp_and_rbp_not_saved() {
        // sub $8,%rsp: cfa = rsp + 16
        let words = [0, 0x40_2000, 9];
        check(
            Rule::new(kind::RSP, 2, 0, 0),
            at(0x7000, 5),
            Stack::new(&words),
            Ok((0x40_2000, 0x7010, 5)),
        );
    }

    #[test]
    fn rbp_below_the_return_address() {
        // push %rbp; mov %rsp,%rbp: cfa = rbp + 16, rbp at cfa - 16
        let words = [0, 0x7777, 0x40_2000];
        let rule = Rule::new(kind::RBP, 2, caller_rbp::AT_CFA, 2);
        check(
            rule,
            at(0x7000, 0x7008),
            Stack::new(&words),
            Ok((0x40_2000, 0x7018, 0x7777)),
        );
    }

    #[test]
    fn rbp_among_other_saved_registers() {
        // push %r15; push %rbp; push %rbx: cfa = rsp + 32, rbp at cfa - 24
        let words = [1, 0x7777, 3, 0x40_2000];
        let rule = Rule::new(kind::RSP, 4, caller_rbp::AT_CFA, 3);
        check(
            rule,
            at(0x7000, 5),
            Stack::new(&words),
            Ok((0x40_2000, 0x7020, 0x7777)),
        );
    }

    #[test]
    fn a_plt_slot_before_and_behind_its_push() {
        let words = [0x40_2000, 0x40_3000];
        let rule = Rule::special(special::PLT + 11);
        let mut walk = at(0x7000, 5);
        walk.registers.ip = 0x40_100a;
        check(rule, walk, Stack::new(&words), Ok((0x40_2000, 0x7008, 5)));
        walk.registers.ip = 0x40_100b;
        check(rule, walk, Stack::new(&words), Ok((0x40_3000, 0x7010, 5)));
    }

    #[test]
    fn a_signal_frame_restores_everything_and_its_pc_is_exact() {
        let mut words = vec![0u64; 32];
        (words[15], words[20], words[21]) = (0x1111, 0x9000, 0x40_5000);
        let rule = Rule::special(special::SIGNAL);
        let walk = check(
            rule,
            at(0x7000, 5),
            Stack::new(&words),
            Ok((0x40_5000, 0x9000, 0x1111)),
        );
        assert_eq!(walk.is_exact, 1);
        // The step after it is an ordinary one again.
        let words = [0, 0x40_2000];
        let mut next = Walk {
            registers: Registers {
                ip: 1,
                sp: 0x7000,
                bp: 5,
            },
            ..walk
        };
        frame(
            Some(Rule::new(kind::RSP, 2, 0, 0)),
            &mut next,
            &mut Stack::new(&words),
        );
        assert_eq!(next.is_exact, 0);
    }

    #[test]
    fn a_realigned_stack() {
        // DRAP: cfa = *(rbp - 8), rbp at *rbp
        let words = [0, 0x7028, 0x8888, 0, 0x40_2000];
        let rule = Rule::new(kind::EXTENDED, 0, 0, 0);
        let extended = Extended {
            base: base::RBP,
            deref: 1,
            offset: -8,
            caller_rbp: extended_rbp::AT_RBP,
            ..Extended::default()
        };
        let stack = Stack {
            extended,
            ..Stack::new(&words)
        };
        check(
            rule,
            at(0x7000, 0x7010),
            stack,
            Ok((0x40_2000, 0x7028, 0x8888)),
        );
    }

    #[test]
    fn a_scratch_register_is_known_in_the_leaf_only() {
        let words = [0, 0, 0x40_2000];
        let rule = Rule::new(kind::EXTENDED, 0, 0, 0);
        let extended = Extended {
            base: base::R10,
            ..Extended::default()
        };
        let mut walk = at(0x7000, 5);
        walk.scratch[0] = 0x7018;
        let stack = || Stack {
            extended,
            ..Stack::new(&words)
        };
        check(rule, walk, stack(), Ok((0x40_2000, 0x7018, 5)));
        walk.is_leaf = 0;
        check(rule, walk, stack(), Err(status::UNSUPPORTED));
    }

    #[test]
    fn ends_and_failures() {
        let end = Rule::special(special::END);
        check(end, at(0x7000, 5), Stack::new(&[]), Err(status::END));
        let plain = Rule::new(kind::RSP, 1, 0, 0);
        check(plain, at(0x7000, 5), Stack::new(&[0]), Err(status::END));
        check(
            plain,
            at(0x7000, 5),
            Stack::new(&[]),
            Err(status::READ_FAULT),
        );
        let downwards = Rule::new(kind::RSP, 0, 0, 0);
        check(
            downwards,
            at(0x7000, 5),
            Stack::new(&[1]),
            Err(status::STUCK),
        );
        let unsupported = Rule::special(special::UNSUPPORTED);
        check(
            unsupported,
            at(0x7000, 5),
            Stack::new(&[1]),
            Err(status::UNSUPPORTED),
        );
        let mut walk = at(0x7000, 5);
        assert_eq!(
            frame(None, &mut walk, &mut Stack::new(&[])),
            status::NO_MAPPING
        );
    }

    /// A pool that begins with a page index, right behind it its page block.
    struct Pool(Vec<u32>);

    #[derive(Clone)]
    struct PoolWords(Vec<u32>);

    impl Words for PoolWords {
        fn word(&self, number: u32) -> u32 {
            self.0[number as usize]
        }
    }

    impl World for Pool {
        type Chunk = PoolWords;

        fn read(&mut self, _: u64) -> Option<u64> {
            None
        }

        fn read_pair(&mut self, _: u64) -> Option<(u64, u64)> {
            None
        }

        fn mapping_start(&self, _: u32) -> u64 {
            0x10_0000
        }

        fn load_mapping(&self, _: u32, into: &mut Mapping) {
            *into = Mapping {
                start: 0x10_0000,
                end: 0x14_0000,
                bias: 0x10_0000,
                table: 1,
                first_page: 0,
                pages: 2,
                reserved: 0,
            };
        }

        fn chunk(&self, _: u32) -> Option<PoolWords> {
            Some(PoolWords(self.0.clone()))
        }

        fn rule(&self, index: u16) -> Rule {
            Rule::new(kind::RSP, u32::from(index), 0, 0)
        }

        fn extended(&self, _: u32) -> Extended {
            Extended::default()
        }
    }

    #[test]
    fn a_table_at_the_very_beginning_of_the_pool() {
        // Word 0 is never used; 1 and 2 are the index; the block is at 3.
        let mut words = vec![0, 3, crate::table::NO_BLOCK];
        words.extend([1; crate::table::BLOCKS as usize]);
        words.push(crate::table::row(0, 7));
        let pool = Pool(words);
        let mut walk = Walk {
            length: 1,
            ..Walk::default()
        };
        let rule = |walk: &mut Walk, pc| rule_for(walk, &pool, pc);
        assert_eq!(
            rule(&mut walk, 0x10_1234),
            Some(Rule::new(kind::RSP, 7, 0, 0))
        );
        // A page without rows, pages that the index does not have, no mapping.
        let no_information = Some(Rule::special(special::FRAME_POINTER));
        assert_eq!(rule(&mut walk, 0x11_0000), no_information);
        assert_eq!(rule(&mut walk, 0x12_0000), no_information);
        assert_eq!(rule(&mut walk, 0x14_0000), None);
    }

    #[test]
    fn a_start_written_by_hand_is_the_root() {
        let hole = Rule::special(special::FRAME_POINTER);
        let mut walk = at(0x7000, 0);
        // The interrupted function may use rbp for anything.
        check(hole, walk, Stack::new(&[]), Err(status::CHAIN_END));
        walk.is_leaf = 0;
        check(hole, walk, Stack::new(&[]), Err(status::END));
        // Code made at run time may, as well.
        let no_table = Rule::special(special::NO_TABLE);
        check(no_table, walk, Stack::new(&[]), Err(status::CHAIN_END));
    }

    #[test]
    fn a_frame_pointer_into_another_stack() {
        // The caller's stack is below ours.
        let words = [0x7040, 0x40_2000];
        let rule = Rule::special(special::STACK_SWITCH);
        check(
            rule,
            at(0x9000, 0x7000),
            Stack::new(&words),
            Ok((0x40_2000, 0x7010, 0x7040)),
        );
        check(rule, at(0x9000, 0), Stack::new(&words), Err(status::END));
        let elsewhere = at(0x9000, 0xa000);
        check(rule, elsewhere, Stack::new(&words), Err(status::SWITCHED));
    }

    fn extended(extended: Extended, words: &[u64]) -> (Rule, Stack<'_>) {
        let stack = Stack {
            extended,
            ..Stack::new(words)
        };
        (Rule::new(kind::EXTENDED, 0, 0, 0), stack)
    }

    #[test]
    fn rbx_is_followed_from_frame_to_frame() {
        // push %rbx: cfa = rsp + 16, rbx at cfa - 16; then cfa = rbx + 24.
        let words = [0x7018, 0x40_2000, 0, 1, 2, 0x40_3000];
        let saves = Extended {
            base: base::RSP,
            offset: 16,
            caller_rbx: extended_rbx::AT_CFA,
            ..Extended::default()
        };
        let uses = Extended {
            base: base::RBX,
            offset: 24,
            ..Extended::default()
        };
        let mut walk = at(0x7000, 5);
        walk.begin_rbx();
        let (rule, stack) = extended(saves, &words);
        let walk = check(rule, walk, stack, Ok((0x40_2000, 0x7010, 5)));
        let (rule, stack) = extended(uses, &words);
        check(rule, walk, stack, Ok((0x40_3000, 0x7030, 5)));
        // A step in between that does not tell.
        let mut walk = at(0x7000, 5);
        walk.begin_rbx();
        let plain = Rule::new(kind::RSP, 2, 0, 0);
        let walk = check(plain, walk, Stack::new(&words), Ok((0x40_2000, 0x7010, 5)));
        let (rule, stack) = extended(uses, &words);
        check(rule, walk, stack, Err(status::UNSUPPORTED));
    }

    #[test]
    fn from_c_to_the_goroutine_that_called_it() {
        // 0x7000: depth, goroutine; 0x7010: its stack; 0x7020: saved rbp and ip.
        let words = [0x18, 0x7010, 0x7000, 0x7038, 0x7777, 0x40_2000, 0, 0];
        let call = Extended {
            base: base::CGO_CALL,
            offset: 8,
            addend: 16,
            caller_rbp: extended_rbp::AT_CFA,
            ..Extended::default()
        };
        let (rule, stack) = extended(call, &words);
        check(rule, at(0x7000, 5), stack, Ok((0x40_2000, 0x7030, 0x7777)));
        // Without a change of stacks.
        let words = [0x7010, 0, 0x7777, 0x40_2000];
        let (rule, stack) = extended(call, &words);
        check(rule, at(0x7000, 5), stack, Ok((0x40_2000, 0x7020, 0x7777)));
    }

    #[test]
    fn a_return_address_in_a_register() {
        let vfork = Extended {
            base: base::RDI,
            deref: deref::RETURN,
            ..Extended::default()
        };
        let mut walk = at(0x7000, 5);
        walk.scratch[scratch(base::RDI)] = 0x40_2000;
        // The stack is as high as the caller's.
        let (rule, stack) = extended(vfork, &[1]);
        check(rule, walk, stack, Ok((0x40_2000, 0x7000, 5)));
        walk.is_leaf = 0;
        let (rule, stack) = extended(vfork, &[1]);
        check(rule, walk, stack, Err(status::UNSUPPORTED));
    }

    #[test]
    fn from_the_runtime_to_its_goroutine() {
        // Ours at 0x7000, its thread at 0x7040, the goroutine at 0x7060.
        let mut words = [0u64; 40];
        words[6] = 0x7040;
        (words[8], words[9]) = (0x7000, 0x7060);
        (words[12], words[13]) = (0x7100, 0x7140);
        (words[19], words[20], words[21]) = (0x7108, 0x40_5000, 0x7777);
        words[33] = 0x40_2000;
        let goroutine = Extended {
            base: base::GOROUTINE,
            offset: 8,
            rbp_offset: 72,
            ..Extended::default()
        };
        let mut walk = at(0x9000, 5);
        walk.is_leaf = 0;
        walk.scratch[scratch(base::R14)] = 0x7000;
        let (rule, stack) = extended(goroutine, &words);
        check(rule, walk, stack, Ok((0x40_5000, 0x7108, 0x7777)));
        let called = Extended {
            deref: 1,
            ..goroutine
        };
        let (rule, stack) = extended(called, &words);
        check(rule, walk, stack, Ok((0x40_2000, 0x7110, 0x7777)));
        // The goroutine was let go of.
        let mut without = words;
        without[9] = 0;
        let (rule, stack) = extended(called, &without);
        check(rule, walk, stack, Err(status::END));
        // r14 is something else.
        walk.scratch[scratch(base::R14)] = 0x7008;
        let (rule, stack) = extended(called, &words);
        check(rule, walk, stack, Err(status::SWITCHED));
    }

    #[test]
    fn random_rules_on_random_stacks_do_no_harm() {
        let mut state = 1u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let words: Vec<u64> = (0..16).map(|_| Stack::BASE + random() % 128).collect();
            let mut walk = at(Stack::BASE + random() % 128, Stack::BASE + random() % 128);
            let extended = Extended {
                base: random() as u8,
                deref: random() as u8 & 1,
                caller_rbp: random() as u8 % 3,
                caller_rbx: random() as u8 % 4,
                offset: random() as i32,
                addend: random() as i32,
                rbp_offset: random() as i32,
            };
            let mut stack = Stack {
                extended,
                ..Stack::new(&words)
            };
            for _ in 0..64 {
                let rule = Rule(random() as u32);
                if frame(Some(rule), &mut walk, &mut stack) != status::CALLER {
                    break;
                }
            }
        }
    }
}
