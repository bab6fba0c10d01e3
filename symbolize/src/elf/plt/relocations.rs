//! Reads what the loader puts into the slots through which stubs jump.

use super::decode::Linkage;
use crate::bytes::{u32_at, u64_at};
use crate::object::{Class, Object, Section};

/// Maximum size: 24 or 8 bytes per relocation, of which a large program has a million.
const RELOCATIONS_BYTES_MAX: u64 = 128 << 20;

/// Size of `Elf64_Rela`; `Elf32_Rel` below. The 32-bit machines that are supported have their
/// addends in the slots.
const WIDE_BYTES: usize = 24;
const NARROW_BYTES: usize = 8;

/// The function whose address the loader puts into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The function of this dynamic symbol.
    Symbol(u32),
    /// The function that the resolver at this address chooses, in a static program.
    Resolver(u64),
    /// The function that a resolver chooses whose address is in the slot itself.
    ResolverIn(u64),
}

/// A relocation in the wide layout.
#[derive(Debug, Clone, Copy)]
pub struct Relocation {
    /// Link address of the slot.
    pub slot: u64,
    /// Relocation type of the machine.
    pub kind: u32,
    /// Number of the dynamic symbol; 0 for none.
    pub symbol: u32,
    /// The addend; `None` if it is in the slot itself.
    pub addend: Option<u64>,
}

impl Linkage {
    /// Returns the function whose address a relocation puts into its slot, if it is a function.
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

/// Returns the sections that may have relocations, and whether stubs refer to their relocations by
/// number.
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

/// Calls `take` with each relocation of a section and its number.
pub fn each(object: &Object, section: &Section, mut take: impl FnMut(u32, Relocation)) {
    let bytes = object.section_data(section, RELOCATIONS_BYTES_MAX, "relocations");
    // Errors are ignored: without relocations only the stubs have no names.
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
