//! The walk of a stack, over memory, mappings, tables and rules that are all
//! made up: every step ends, whatever it reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probe_ebpf::ending::ending;
use probe_ebpf::machine::{Aarch64, X86_64};
use probe_ebpf::registers::{Registers, SCRATCH_REGISTERS};
use probe_ebpf::rule::{Extended, Rule};
use probe_ebpf::status;
use probe_ebpf::table::{Mapping, Words};
use probe_ebpf::walk::{Machine, Walk, frame, rule_for};
use probe_ebpf::world::World;

const MAPPINGS: usize = 4;
const FRAMES_MAX: u32 = 600;

/// Everything that is asked for comes from the input, by a hash of the question.
struct MadeUp<'a> {
    bytes: &'a [u8],
    mappings: [Mapping; MAPPINGS],
}

impl MadeUp<'_> {
    fn number(&self, what: u64, at: u64) -> u64 {
        if self.bytes.is_empty() {
            return 0;
        }
        let mixed = (what << 56 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let from = mixed as usize % self.bytes.len();
        let mut word = [0; 8];
        let rest = &self.bytes[from..];
        let len = rest.len().min(8);
        word[..len].copy_from_slice(&rest[..len]);
        u64::from_le_bytes(word)
    }
}

struct Chunk<'a, 'b>(&'b MadeUp<'a>);

impl Words for Chunk<'_, '_> {
    fn word(&self, number: u32) -> u32 {
        self.0.number(1, number.into()) as u32
    }
}

/// One for each walk, so that chunks can borrow it.
struct Asked<'a, 'b>(&'b MadeUp<'a>);

impl<'a, 'b> World for Asked<'a, 'b> {
    type Chunk = Chunk<'a, 'b>;

    fn read(&mut self, address: u64) -> Option<u64> {
        let word = self.0.number(2, address);
        (word % 31 != 30).then_some(word)
    }

    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
        Some((self.read(address)?, self.read(address.wrapping_add(8))?))
    }

    fn mapping_start(&self, number: u32) -> u64 {
        let mapping = self.0.mappings.get(number as usize);
        mapping.map_or(0, |mapping| mapping.start)
    }

    fn load_mapping(&self, number: u32, into: &mut Mapping) {
        if let Some(mapping) = self.0.mappings.get(number as usize) {
            *into = *mapping;
        }
    }

    fn chunk(&self, number: u32) -> Option<Chunk<'a, 'b>> {
        (number % 13 != 12).then_some(Chunk(self.0))
    }

    fn rule(&self, index: u16) -> Rule {
        Rule(self.0.number(3, index.into()) as u32)
    }

    fn extended(&self, index: u32) -> Extended {
        let [low, high] = [4, 5].map(|what| self.0.number(what, index.into()));
        Extended {
            base: low as u8,
            deref: (low >> 8) as u8,
            caller_rbp: (low >> 16) as u8,
            caller_rbx: (low >> 24) as u8,
            offset: (low >> 32) as i32,
            addend: high as i32,
            rbp_offset: (high >> 32) as i32,
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    walk::<X86_64>(bytes);
    walk::<Aarch64>(bytes);
});

fn walk<M: Machine>(bytes: &[u8]) {
    let mut made_up = MadeUp {
        bytes,
        mappings: [Mapping::default(); MAPPINGS],
    };
    for number in 0..MAPPINGS {
        let word = |what| made_up.number(what, number as u64);
        // Half of them are near to each other, so that walks go on.
        let start = match word(6) & 1 {
            0 => (number as u64 + 1) << 20,
            _ => word(7),
        };
        made_up.mappings[number] = Mapping {
            start,
            end: start.wrapping_add(word(8) & 0xf_ffff),
            bias: word(9),
            table: word(10) as u32,
            first_page: word(11) as u32 & 0xff,
            pages: word(12) as u32 & 0xfff,
            reserved: 0,
        };
    }
    let word = |what| made_up.number(what, 0);
    let mut walk = Walk {
        registers: Registers {
            ip: made_up.mappings[0].start.wrapping_add(word(13) & 0xffff),
            sp: word(14),
            bp: word(15),
        },
        scratch: [word(16); SCRATCH_REGISTERS],
        length: MAPPINGS as u32,
        is_exact: 1,
        is_leaf: 1,
        status: status::CALLER,
        mapping: made_up.mappings[1],
        ..Walk::default()
    };
    M::begin(&mut walk);
    let mut world = Asked(&made_up);
    let mut frames = 0;
    while frames < FRAMES_MAX {
        frames += 1;
        let pc = walk
            .registers
            .ip
            .wrapping_sub(u64::from(walk.is_exact == 0));
        let rule = rule_for(&mut walk, &world, pc);
        if frame::<M, _>(rule, &mut walk, &mut world) != status::CALLER {
            break;
        }
    }
    _ = ending(walk.status, walk.links, frames);
}
