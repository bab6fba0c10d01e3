//! The walk of a stack, one frame at a time, by unwind tables where there are
//! some and by frame pointers where there are none.
//!
//! The same code runs in BPF on a live stack and on the host on a copied one;
//! what differs is the [`World`] it reads. Everything it knows lies in a
//! [`Walk`], which BPF keeps in a map, so that the verifier takes each value for
//! unknown and looks at a frame once.

use crate::frame_pointer;
use crate::record::Ending;
use crate::rule::{Extended, Rule, base, caller_rbp, extended_rbp, kind, special};
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

/// Registers of the interrupted function that a cfa may be counted from: by
/// [`base`] minus [`base::R10`].
pub const SCRATCH_REGISTERS: usize = 9;

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
    pub scratch: [u64; SCRATCH_REGISTERS],
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
}

/// What a walk reads.
pub trait World {
    type Chunk: Words;

    /// The word at `address` of the thread's memory.
    fn read(&mut self, address: u64) -> Option<u64>;
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
        return Some(Rule::special(special::FRAME_POINTER));
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
    let no_information = Rule::special(special::FRAME_POINTER);
    if mapping.table == NO_TABLE {
        return no_information;
    }
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
        special::FRAME_POINTER => {
            // A caller that has no unwind information, in a file that has some:
            // what is written by hand to begin a process or a thread. The ABI
            // has it begin with rbp zero, and the tables kept track of rbp.
            if registers.bp == 0 && walk.is_leaf == 0 && walk.mapping.table != NO_TABLE {
                return status::END;
            }
            let step = frame_pointer::step(&mut walk.registers, world);
            if step == status::CALLER {
                walk.links += 1;
            }
            step
        }
        special::PLT_11 | special::PLT_10 => {
            let pushed_from = if which == special::PLT_11 { 11 } else { 10 };
            let pushed = if registers.ip & 15 >= pushed_from {
                8
            } else {
                0
            };
            finish(registers.sp.wrapping_add(8 + pushed), false, 0, walk, world)
        }
        special::SIGNAL => signal_step(walk, world),
        special::END => status::END,
        _ => status::UNSUPPORTED,
    }
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
    let from = match rule.base {
        base::RSP => walk.registers.sp,
        base::RBP => walk.registers.bp,
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
    let mut cfa = from.wrapping_add(i64::from(rule.offset) as u64);
    if rule.deref != 0 {
        let Some(value) = world.read(cfa) else {
            return status::READ_FAULT;
        };
        cfa = value;
    }
    cfa = cfa.wrapping_add(i64::from(rule.addend) as u64);
    let near = if rule.caller_rbp == extended_rbp::AT_RBP {
        walk.registers.bp
    } else {
        cfa
    };
    let rbp_at = near.wrapping_add(i64::from(rule.rbp_offset) as u64);
    finish(
        cfa,
        rule.caller_rbp != extended_rbp::SAME,
        rbp_at,
        walk,
        world,
    )
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
        let rule = Rule::special(special::PLT_11);
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
        let fp = Rule::special(special::FRAME_POINTER);
        let mut walk = at(0x7000, 0);
        walk.mapping.table = 1;
        // The interrupted function may use rbp for anything.
        check(fp, walk, Stack::new(&[]), Err(status::CHAIN_END));
        walk.is_leaf = 0;
        check(fp, walk, Stack::new(&[]), Err(status::END));
        // Code made at run time may, as well.
        walk.mapping.table = NO_TABLE;
        check(fp, walk, Stack::new(&[]), Err(status::CHAIN_END));
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
                reserved: 0,
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
