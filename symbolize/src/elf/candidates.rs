//! Finds the symbols that are functions. Other symbols are variables, files, sections, and labels
//! of tools.

use std::cmp::Reverse;

use object::elf;

use super::place::{SYMBOL_BYTES, TablePlace};
use super::strings::{Name, Names, Table};
use super::tables::{self, Loaded};
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Maximum number of functions: more than any known program has (the largest have 1 million). They
/// take 160 MiB while they are sorted.
const CANDIDATES_MAX: usize = 4 << 20;

/// Flag in `.gnu.version`: a version that new programs do not link to.
const VERSION_HIDDEN: u16 = 0x8000;

/// A symbol that is a function, with its link address and its size in bytes. The size is 0 if
/// the symbol table gives none.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub start: u64,
    pub size: u64,
    pub name: Name,
    /// Number of the section that contains it.
    pub section: u16,
    pub binding: Binding,
    /// Whether it is an old version of a function, kept for programs linked against it.
    pub old_version: bool,
}

impl Candidate {
    /// Sort key: by address, the larger first, so that a containing function precedes those inside.
    pub fn order(&self) -> (u64, Reverse<u64>) {
        (self.start, Reverse(self.size))
    }
}

/// Binding of a symbol, in ascending order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Not in the file: a name that we made for a stub.
    Stub,
    /// `STB_LOCAL`: visible in its own object file only.
    Local,
    /// `STB_WEAK`: visible everywhere, and replaced by a global symbol of the same name.
    Weak,
    /// `STB_GLOBAL`: visible everywhere.
    Global,
}

/// The symbols of one file.
#[derive(Debug, Clone, Copy)]
pub struct Symbols<'a> {
    /// The file.
    pub object: &'a Object,
    /// Place of `.symtab`, if there is one.
    pub full: Option<TablePlace>,
    /// Place of `.dynsym`, if its symbols are not among the loaded ones.
    pub dynamic: Option<TablePlace>,
    /// Symbols of `.dynsym`, if they are read already, and its versions.
    pub loaded: &'a Loaded,
    /// Names of the symbols.
    pub names: &'a Names,
}

impl Symbols<'_> {
    /// Returns all functions.
    pub fn functions(&self) -> Result<Vec<Candidate>, OpenError> {
        self.functions_if(|_, _| true)
    }

    /// Returns the functions whose start and size `is_wanted` accepts.
    pub fn functions_if(
        &self,
        is_wanted: impl Fn(u64, u64) -> bool,
    ) -> Result<Vec<Candidate>, OpenError> {
        let mut functions = Vec::new();
        self.each(is_wanted, |function| {
            if functions.len() == CANDIDATES_MAX {
                return Err(OpenError::Refused("too many functions"));
            }
            functions.push(function);
            Ok(())
        })?;
        Ok(functions)
    }

    /// Calls `take` with each function whose start and size `wanted` accepts. Only these two fields
    /// of other symbols are read.
    pub fn each(
        &self,
        is_wanted: impl Fn(u64, u64) -> bool,
        mut take: impl FnMut(Candidate) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let tables = [(Table::Full, self.full), (Table::Dynamic, self.dynamic)];
        for (table, place) in tables {
            let mut first = 0;
            if let Some(place) = place {
                tables::read_pieces(self.object, place.symbols, |symbols| {
                    self.each_of((table, first), symbols, &is_wanted, &mut take)?;
                    first += symbols.len() / SYMBOL_BYTES;
                    Ok(())
                })?;
            }
        }
        let loaded = &self.loaded.dynamic;
        self.each_of((Table::Dynamic, 0), loaded, &is_wanted, &mut take)
    }

    fn each_of(
        &self,
        (table, first): (Table, usize),
        symbols: &[u8],
        is_wanted: &impl Fn(u64, u64) -> bool,
        take: &mut impl FnMut(Candidate) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let object = self.object;
        // ARM sets this bit for Thumb code; it is not part of the address.
        let thumb = u64::from(object.machine() == elf::EM_ARM.0);
        let (symbols, _) = symbols.as_chunks::<SYMBOL_BYTES>();
        for (index, symbol) in symbols.iter().enumerate() {
            let (start, size) = (u64_at(symbol, 8) & !thumb, u64_at(symbol, 16));
            if !is_wanted(start, size) {
                continue;
            }
            let Some(mut candidate) = function(object, table, start, symbol) else {
                continue;
            };
            if is_label(object, symbol, &candidate, self.names)? {
                continue;
            }
            if table == Table::Dynamic {
                candidate.old_version = self.version(first + index) & VERSION_HIDDEN != 0;
            }
            take(candidate)?;
        }
        Ok(())
    }

    /// Version of a dynamic symbol; 0 if the file has none.
    fn version(&self, index: usize) -> u16 {
        let version = self.loaded.versions.get(index * 2..index * 2 + 2);
        version.map_or(0, |v| u16::from_le_bytes([v[0], v[1]]))
    }
}

/// Returns the symbol as a function, as far as its fields tell, without reading its name.
fn function(
    object: &Object,
    table: Table,
    start: u64,
    symbol: &[u8; SYMBOL_BYTES],
) -> Option<Candidate> {
    let (info, section) = (symbol[4], u16_at(symbol, 6));
    let candidate = Candidate {
        start,
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
    let defined = section != elf::SHN_UNDEF.0 && candidate.start != 0;
    let named = candidate.name.offset != 0;
    let keep = code && defined && named;
    (keep && object.segments().is_executable(LinkAddr(candidate.start))).then_some(candidate)
}

/// Whether a symbol without a type is a function: it is if it lies in code, as hand-written
/// assembly leaves the type out.
fn in_code_section(object: &Object, section: u16) -> bool {
    if object.sections().is_empty() {
        return true;
    }
    let section = object.sections().get(usize::from(section));
    section.is_some_and(|section| section.is_executable())
}

/// Whether the name is that of a label, which is not a function: those that the ARM and RISC-V ABIs
/// put where code and data meet (`$x`, `$d.12`), assembler locals (`.L12`), and the marks of the
/// annobin plug-in and of linker scripts.
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
