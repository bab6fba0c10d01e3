//! Symbols that are functions. The rest of a symbol table are variables,
//! files, sections, and labels that tools leave behind.

use std::cmp::Reverse;

use object::elf;

use super::place::{SYMBOL_BYTES, TablePlace};
use super::strings::{Name, Names, Table};
use super::tables::{self, Loaded};
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// More functions than any known program has (the largest have 1 million), in
/// 160 MiB while they are sorted.
const CANDIDATES_MAX: usize = 4 << 20;

/// In `.gnu.version`: not what new programs link to.
const VERSION_HIDDEN: u16 = 0x8000;

/// A symbol that is a function.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub start: u64,
    pub size: u64,
    pub name: Name,
    pub section: u16,
    pub binding: Binding,
    pub old_version: bool,
}

impl Candidate {
    /// By address; the larger first, so that who contains comes first.
    pub fn order(&self) -> (u64, Reverse<u64>) {
        (self.start, Reverse(self.size))
    }
}

/// In ascending order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Not in the file: the name is our own.
    Stub,
    Local,
    Weak,
    Global,
}

pub fn collect(
    object: &Object,
    full: Option<TablePlace>,
    loaded: &Loaded,
    names: &Names,
    out: &mut Vec<Candidate>,
) -> Result<(), OpenError> {
    if let Some(full) = full {
        tables::read_pieces(object, full.symbols, |symbols| {
            add(object, Table::Full, symbols, &[], names, out)
        })?;
    }
    let (symbols, versions) = (&loaded.dynamic, &loaded.versions);
    add(object, Table::Dynamic, symbols, versions, names, out)
}

fn add(
    object: &Object,
    table: Table,
    symbols: &[u8],
    versions: &[u8],
    names: &Names,
    out: &mut Vec<Candidate>,
) -> Result<(), OpenError> {
    let (symbols, _) = symbols.as_chunks::<SYMBOL_BYTES>();
    for (index, symbol) in symbols.iter().enumerate() {
        let Some(mut candidate) = function(object, table, symbol) else {
            continue;
        };
        if is_label(object, symbol, &candidate, names)? {
            continue;
        }
        let version = versions
            .get(index * 2..index * 2 + 2)
            .map_or(0, |v| u16::from_le_bytes([v[0], v[1]]));
        candidate.old_version = version & VERSION_HIDDEN != 0;
        if out.len() == CANDIDATES_MAX {
            return Err(OpenError::Refused("too many functions"));
        }
        out.push(candidate);
    }
    Ok(())
}

/// What the symbol's fields tell, without a look at its name.
fn function(object: &Object, table: Table, symbol: &[u8; SYMBOL_BYTES]) -> Option<Candidate> {
    let (info, section) = (symbol[4], u16_at(symbol, 6));
    let mut candidate = Candidate {
        start: u64_at(symbol, 8),
        size: u64_at(symbol, 16),
        name: Name {
            table,
            offset: u32_at(symbol, 0),
        },
        section,
        binding: match elf::SymbolBind(info >> 4) {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        },
        old_version: false,
    };
    let code = match elf::SymbolType(info & 0xf) {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        elf::STT_NOTYPE => in_code_section(object, section),
        _ => false,
    };
    if object.machine() == elf::EM_ARM.0 {
        // Set where the code is Thumb; no instruction lies there.
        candidate.start &= !1;
    }
    let defined = section != elf::SHN_UNDEF.0 && candidate.start != 0;
    let named = candidate.name.offset != 0;
    let keep = code && defined && named;
    (keep && object.segments().is_executable(LinkAddr(candidate.start))).then_some(candidate)
}

/// Symbols without a type are functions where they are in code: hand-written
/// assembly leaves the type out.
fn in_code_section(object: &Object, section: u16) -> bool {
    if object.sections().is_empty() {
        return true;
    }
    let section = object.sections().get(usize::from(section));
    section.is_some_and(|section| section.is_executable())
}

/// Whether the name is that of a label, which is no function: those that the
/// ARM and RISC-V ABIs put where code and data meet (`$x`, `$d.12`), assembler
/// locals (`.L12`), and the marks of the annobin plug-in and linker scripts.
fn is_label(
    object: &Object,
    symbol: &[u8; SYMBOL_BYTES],
    candidate: &Candidate,
    names: &Names,
) -> Result<bool, OpenError> {
    let typed = elf::SymbolType(symbol[4] & 0xf) != elf::STT_NOTYPE;
    if typed && candidate.size != 0 {
        return Ok(false);
    }
    let name = names.get(candidate.name)?;
    let marks_a_place =
        !typed && candidate.size == 0 && (name.ends_with(b"_end") || name.ends_with(b"_start"));
    let entry = matches!(name, b"_start" | b"__start");
    let is_x86 = [elf::EM_X86_64.0, elf::EM_386.0].contains(&object.machine());
    let mapping = name.starts_with(b"$") && !is_x86;
    let local = name.starts_with(b".L") || name.starts_with(b".annobin");
    Ok(name.is_empty() || mapping || local || (marks_a_place && !entry))
}
