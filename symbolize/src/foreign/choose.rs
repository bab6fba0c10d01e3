//! Which symbols are functions, which name each has, and where it ends: neither format stores the
//! size of a function.

use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::read::{ExportTarget, File, FileKind, NameOrOrdinal};
use object::{Architecture, BinaryFormat, Object, ObjectSymbol, SymbolKind};

use crate::OpenError;

/// Maximum length of a name; longer ones are cut.
const NAME_BYTES_MAX: usize = 64 << 10;

/// Maximum size of all names together. They can overlap in the file, so the file's size does not
/// limit it.
const NAMES_BYTES_MAX: usize = 512 << 20;

/// Maximum number of programs for different machines in one file: real ones have two or three.
const PROGRAMS_MAX: usize = 64;

/// The machine that a program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86: `x86_64`.
    X86_64,
    /// 64-bit Arm: `arm64`, `aarch64`.
    Aarch64,
}

/// A function: its link addresses from `start` up to `end`, and where its name is in a list of
/// names.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    pub start: u64,
    pub end: u64,
    name: u32,
    name_len: u32,
}

impl Function {
    /// Returns the name of the function. `names` is the list to which it was added.
    pub fn name<'n>(&self, names: &'n [u8]) -> &'n [u8] {
        let start = self.name as usize;
        &names[start..start + self.name_len as usize]
    }
}

/// Returns the bytes of one program: the whole file, or the part for a machine.
pub fn program(bytes: &[u8], machine: Option<Machine>) -> Result<&[u8], OpenError> {
    let damaged = |_| OpenError::Damaged("list of programs");
    match FileKind::parse(bytes) {
        Ok(FileKind::MachOFat32) => {
            let file = MachOFatFile32::parse(bytes).map_err(damaged)?;
            part(bytes, file.arches(), machine)
        }
        Ok(FileKind::MachOFat64) => {
            let file = MachOFatFile64::parse(bytes).map_err(damaged)?;
            part(bytes, file.arches(), machine)
        }
        _ => Ok(bytes),
    }
}

fn part<'b, A: FatArch>(
    bytes: &'b [u8],
    parts: &[A],
    machine: Option<Machine>,
) -> Result<&'b [u8], OpenError> {
    let fits = |part: &&A| match (part.architecture(), machine) {
        (Architecture::X86_64, wanted) => wanted != Some(Machine::Aarch64),
        (Architecture::Aarch64, wanted) => wanted != Some(Machine::X86_64),
        _ => false,
    };
    let part = parts
        .iter()
        .take(PROGRAMS_MAX)
        .find(fits)
        .ok_or(OpenError::Refused(
            "no program for this machine in the file",
        ))?;
    part.data(bytes)
        .map_err(|_| OpenError::Damaged("list of programs"))
}

/// Returns the functions of the symbol table; their ends are set later.
pub fn symbols(file: &File<'_>, names: &mut Vec<u8>, max: usize) -> Vec<Function> {
    let is_function = |symbol: &object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.kind() == SymbolKind::Text
    };
    let mut functions = Vec::new();
    for symbol in file.symbols().filter(is_function).take(max) {
        let name = symbol.name_bytes().unwrap_or_default();
        push(&mut functions, names, symbol.address(), plain(file, name));
    }
    functions
}

/// Returns the exported functions, if there is no symbol table.
pub fn exports(file: &File<'_>, names: &mut Vec<u8>, max: usize) -> Vec<Function> {
    let mut functions = Vec::new();
    let exports = file.exports().into_iter().flatten();
    for export in exports.take(max).map_while(Result::ok) {
        if let (NameOrOrdinal::Name(name), ExportTarget::Address { address }) =
            (export.name(), export.target())
        {
            push(&mut functions, names, address, plain(file, name));
        }
    }
    functions
}

/// Removes the underscore that compilers for Mach-O put before each name.
fn plain<'n>(file: &File<'_>, name: &'n [u8]) -> &'n [u8] {
    match file.format() {
        BinaryFormat::MachO => name.strip_prefix(b"_").unwrap_or(name),
        _ => name,
    }
}

fn push(functions: &mut Vec<Function>, names: &mut Vec<u8>, start: u64, name: &[u8]) {
    let name = &name[..name.len().min(NAME_BYTES_MAX)];
    if name.is_empty() || names.len() + name.len() > NAMES_BYTES_MAX {
        return;
    }
    let offset = names.len() as u32;
    names.extend(name);
    functions.push(Function {
        start,
        end: start,
        name: offset,
        name_len: name.len() as u32,
    });
}

/// Sorts functions and sets their ends: each ends where the next one starts, with a name or
/// without, or at the end of its section. Symbols outside of code are dropped. Of several names at
/// one address the one with fewer underscores, then the shorter one, then the alphabetically first
/// one is kept.
pub fn ends(
    mut functions: Vec<Function>,
    names: &[u8],
    code: &[(u64, u64)],
    boundaries: &[u64],
) -> Vec<Function> {
    let order = |function: &Function| {
        let name = function.name(names);
        let underscores = name.iter().take_while(|byte| **byte == b'_').count();
        (function.start, underscores, name.len())
    };
    functions.sort_unstable_by(|a, b| {
        let by_name = || a.name(names).cmp(b.name(names));
        order(a).cmp(&order(b)).then_with(by_name)
    });
    functions.dedup_by_key(|function| function.start);
    let starts: Vec<u64> = functions.iter().skip(1).map(|f| f.start).collect();
    let next = starts.into_iter().chain([u64::MAX]);
    for (function, next) in functions.iter_mut().zip(next) {
        let here = |(start, end): &&(u64, u64)| (*start..*end).contains(&function.start);
        let behind = boundaries.partition_point(|boundary| *boundary <= function.start);
        let boundary = boundaries.get(behind).copied().unwrap_or(u64::MAX);
        let end = code.iter().find(here).map_or(0, |(_, end)| *end);
        function.end = end.min(next).min(boundary);
    }
    functions.retain(|function| function.end > function.start);
    functions.shrink_to_fit();
    functions
}
