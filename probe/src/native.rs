//! Walks a copied stack in user space, with the same steps as in BPF and the same tables.

use crate::stack::StackCopy;
use crate::tables::Reader;
use probe_ebpf::ending::ending;
use probe_ebpf::machine::This;
use probe_ebpf::rule::{Extended, Rule};
use probe_ebpf::table::{Mapping, NO_TABLE, Words};
use probe_ebpf::walk::{Machine, Walk, frame, rule_for};
use probe_ebpf::world::World;
use probe_ebpf::{Ending, UserFrame, status};

/// How far below the stack pointer a register can have been saved or popped: more than all
/// registers together need.
const BELOW_BYTES: u64 = 256;

/// How many frames most stacks have.
const USUAL_FRAMES: usize = 32;

/// The result of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// The frames, innermost first.
    pub frames: Vec<UserFrame>,
    /// For each frame the address at which its part of the stack begins, which is after the return
    /// address of the call that it made. For the first frame it is the stack pointer.
    pub starts: Vec<u64>,
    /// Why the walk ended.
    pub ending: Ending,
    /// The program counter of the frame in which the walk stopped.
    pub stopped_at: u64,
}

/// The executable mappings of a process and their tables, by number in the order of their
/// addresses. A process may have thousands, and a walk needs a few: each is looked up on demand.
pub trait Mapped {
    /// Returns the number of mappings.
    fn count(&self) -> usize;
    /// Returns the start address of a mapping; `None` beyond the last one.
    fn start(&self, number: usize) -> Option<u64>;
    /// Returns a mapping in the form of the walk.
    fn mapping(&self, number: usize) -> Option<Mapping>;
}

/// Walks a copied stack with the tables of the process's mappings.
pub fn walk<P: Mapped>(
    stack: &StackCopy,
    mappings: &P,
    tables: &Reader,
    frames_max: usize,
) -> Walked {
    walk_as::<This, P>(stack, mappings, tables, frames_max)
}

/// Walks a stack of machine `M`.
fn walk_as<M: Machine, P: Mapped>(
    stack: &StackCopy,
    mappings: &P,
    tables: &Reader,
    frames_max: usize,
) -> Walked {
    let mut world = Copied {
        stack,
        mappings,
        tables,
        saved_below_sp: None,
        has_lacked: false,
    };
    let mut walk = Walk {
        registers: stack.registers,
        scratch: stack.scratch,
        length: mappings.count() as u32,
        is_exact: 1,
        is_leaf: 1,
        status: status::CALLER,
        mapping: Mapping {
            table: NO_TABLE,
            ..Mapping::default()
        },
        ..Walk::default()
    };
    M::begin(&mut walk);
    let usual = frames_max.min(USUAL_FRAMES);
    let (mut frames, mut starts) = (Vec::with_capacity(usual), Vec::with_capacity(usual));
    while frames.len() < frames_max {
        starts.push(walk.registers.sp);
        let ip = walk.registers.ip;
        let pc = if walk.is_exact != 0 {
            frames.push(UserFrame::exact(ip));
            ip
        } else {
            frames.push(UserFrame::return_address(ip));
            ip.wrapping_sub(1)
        };
        let rule = rule_for(&mut walk, &world, pc);
        world.saved_below_sp = rule.and_then(|rule| M::saved_below_sp(rule, &stack.registers));
        if frame::<M, _>(rule, &mut walk, &mut world) != status::CALLER {
            break;
        }
    }
    let told = ending(walk.status, walk.links, frames.len() as u32);
    Walked {
        ending: match told {
            // The reason is not the thread, but the limited copy.
            Ending::ReadFault if world.has_lacked => Ending::CopyCut,
            other => other,
        },
        stopped_at: walk.registers.ip,
        frames,
        starts,
    }
}

struct Copied<'a, M> {
    stack: &'a StackCopy,
    mappings: &'a M,
    tables: &'a Reader,
    /// The caller's frame pointer, if the rule of the frame that is being walked has it saved below
    /// the stack pointer.
    saved_below_sp: Option<u64>,
    /// Whether the walk needed a word that the copy does not have.
    has_lacked: bool,
}

impl<'a, M: Mapped> World for Copied<'a, M> {
    type Chunk = TableWords<'a>;

    fn read(&mut self, address: u64) -> Option<u64> {
        let Some(offset) = address.checked_sub(self.stack.registers.sp) else {
            return self.read_below_sp(address);
        };
        let word = self.stack.bytes.word(offset);
        self.has_lacked |= word.is_none() && self.stack.bytes.lacks(offset);
        word
    }

    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
        Some((self.read(address)?, self.read(address.checked_add(8)?)?))
    }

    fn mapping_start(&self, number: u32) -> u64 {
        self.mappings.start(number as usize).unwrap_or_default()
    }

    fn load_mapping(&self, number: u32, into: &mut Mapping) {
        if let Some(mapping) = self.mappings.mapping(number as usize) {
            *into = mapping;
        }
    }

    fn chunk(&self, _number: u32) -> Option<TableWords<'a>> {
        Some(TableWords(self.tables))
    }

    fn rule(&self, index: u16) -> Rule {
        self.tables.rule(index)
    }

    fn extended(&self, index: u32) -> Extended {
        self.tables.extended(index)
    }
}

impl<M> Copied<'_, M> {
    /// Memory below the stack pointer is not in the copy: see [`Machine::saved_below_sp`].
    fn read_below_sp(&self, address: u64) -> Option<u64> {
        let below = self.stack.registers.sp - address;
        self.saved_below_sp.filter(|_| below <= BELOW_BYTES)
    }
}

/// All chunks of the table, selected by number.
struct TableWords<'a>(&'a Reader);

impl Words for TableWords<'_> {
    fn word(&self, number: u32) -> u32 {
        self.0.word(number)
    }
}
