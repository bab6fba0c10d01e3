//! The walk of a copied stack, on the host: the same steps as in BPF, over the
//! same tables.

use crate::stack::StackCopy;
use crate::tables::Reader;
use probe_ebpf::ending::ending;
use probe_ebpf::machine::This;
use probe_ebpf::rule::{Extended, Rule};
use probe_ebpf::table::{Mapping, NO_TABLE, Words};
use probe_ebpf::walk::{Machine, Walk, frame, rule_for};
use probe_ebpf::world::World;
use probe_ebpf::{Ending, UserFrame, status};

/// How far below the stack pointer a register can have been saved or popped: more than
/// all that there are.
const BELOW_BYTES: u64 = 256;

/// What a walk has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Innermost first.
    pub frames: Vec<UserFrame>,
    /// Of each frame where its part of the stack begins: where the return address of what it
    /// called is behind. Of the first one it is the stack pointer.
    pub starts: Vec<u64>,
    pub ending: Ending,
    /// The pc of the frame that the walk stopped in.
    pub stopped_at: u64,
}

/// The executable mappings of a process and their tables, by number in the order of their
/// addresses. A process may have thousands, and a walk asks for a few: each is looked up when
/// it is asked for.
pub trait Mapped {
    /// How many there are.
    fn count(&self) -> usize;
    /// Where one begins.
    fn start(&self, number: usize) -> Option<u64>;
    /// One as the walk sees it.
    fn mapping(&self, number: usize) -> Option<Mapping>;
}

/// Walks a copied stack by the tables of the process's mappings.
pub fn walk<P: Mapped>(
    stack: &StackCopy,
    mappings: &P,
    tables: &Reader,
    frames_max: usize,
) -> Walked {
    walk_as::<This, P>(stack, mappings, tables, frames_max)
}

/// The same for a stack of some machine.
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
    let (mut frames, mut starts) = (Vec::new(), Vec::new());
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
            // Not the thread's fault, but that of our copy.
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
    /// The caller's frame pointer, where the rule of the frame that is being walked has it below
    /// the stack pointer.
    saved_below_sp: Option<u64>,
    /// A word that the copy does not have was asked for.
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
    /// What lies below the stack pointer is not in the copy: see [`Machine::saved_below_sp`].
    fn read_below_sp(&self, address: u64) -> Option<u64> {
        let below = self.stack.registers.sp - address;
        self.saved_below_sp.filter(|_| below <= BELOW_BYTES)
    }
}

/// All chunks at once: the number tells which.
struct TableWords<'a>(&'a Reader);

impl Words for TableWords<'_> {
    fn word(&self, number: u32) -> u32 {
        self.0.word(number)
    }
}
