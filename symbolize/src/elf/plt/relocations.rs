//! What the loader puts into the slots through which stubs jump.

use super::decode::Linkage;
use crate::bytes::{u32_at, u64_at};
use crate::object::{Class, Object, Section};

/// 24 or 8 bytes per relocation; a large program has a million of them.
const RELOCATIONS_BYTES_MAX: u64 = 128 << 20;

/// `Elf64_Rela`, `Elf32_Rel`. The narrow machines that are known here have their addends
/// in the slots.
const WIDE_BYTES: usize = 24;
const NARROW_BYTES: usize = 8;

/// What the loader puts into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The function of this dynamic symbol.
    Symbol(u32),
    /// What the resolver at this address chooses, in a static program.
    Resolver(u64),
    /// The same where the resolver's address stands in the slot itself.
    ResolverIn(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Relocation {
    pub slot: u64,
    pub kind: u32,
    pub symbol: u32,
    pub addend: Option<u64>,
}

impl Linkage {
    /// What a relocation puts into its slot, if that is a function.
    pub fn function(self, relocation: &Relocation) -> Option<Function> {
        let kinds = self.relocation_kinds();
        if kinds.symbols.contains(&relocation.kind) {
            return Some(Function::Symbol(relocation.symbol));
        }
        let is_resolved = kinds.resolver == relocation.kind;
        is_resolved.then_some(match relocation.addend {
            Some(addend) => Function::Resolver(addend),
            None => Function::ResolverIn(relocation.slot),
        })
    }
}

/// The sections that may have them, and whether stubs know them by number.
pub fn sections(object: &Object) -> impl Iterator<Item = (&Section, bool)> {
    let names: [&[u8]; 2] = match object.class() {
        Class::Wide => [b".rela.plt", b".rela.dyn"],
        Class::Narrow => [b".rel.plt", b".rel.dyn"],
    };
    let section = |name| object.section_by_name(name);
    let numbered = [true, false].into_iter();
    let sections = names.into_iter().map(section).zip(numbered);
    sections.filter_map(|(section, is_numbered)| Some((section?, is_numbered)))
}

/// Gives `take` each of a section, with its number.
pub fn each(object: &Object, section: &Section, mut take: impl FnMut(u32, Relocation)) {
    let bytes = object.section_data(section, RELOCATIONS_BYTES_MAX, "relocations");
    // Without them only the stubs have no names.
    let bytes = bytes.unwrap_or_default();
    match object.class() {
        Class::Wide => {
            let (records, _) = bytes.as_chunks::<WIDE_BYTES>();
            for (number, record) in (0..).zip(records) {
                take(number, wide(record));
            }
        }
        Class::Narrow => {
            let (records, _) = bytes.as_chunks::<NARROW_BYTES>();
            for (number, record) in (0..).zip(records) {
                take(number, narrow(record));
            }
        }
    }
}

fn wide(record: &[u8; WIDE_BYTES]) -> Relocation {
    Relocation {
        slot: u64_at(record, 0),
        kind: u32_at(record, 8),
        symbol: u32_at(record, 12),
        addend: Some(u64_at(record, 16)),
    }
}

fn narrow(record: &[u8; NARROW_BYTES]) -> Relocation {
    let info = u32_at(record, 4);
    Relocation {
        slot: u32_at(record, 0).into(),
        kind: info & 0xff,
        symbol: info >> 8,
        addend: None,
    }
}
