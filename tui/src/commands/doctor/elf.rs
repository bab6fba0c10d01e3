//! What an ELF file offers: names of functions, and stacks that can be walked. The file is read,
//! never mapped.

use object::read::{Object, ObjectSection, ReadCache};
use std::fs::File;
use symbolize::FileSource;
use symbolize::debug_file::DebugFiles;
use symbolize::unwind::UnwindTable;

/// The symbol table that functions are named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// `.symtab` names all functions.
    Symtab,
    /// `.dynsym` names exported functions only.
    Dynsym,
    None,
}

/// What an ELF file says about names and unwinding.
#[derive(Debug, Clone, PartialEq)]
pub struct ElfFacts {
    pub is_64_bit: bool,
    /// The build-id, in hexadecimal.
    pub build_id: Option<String>,
    pub symbols: Symbols,
    pub has_eh_frame: bool,
    /// The share of the code, from 0 to 1, that can be walked without frame pointers; or why it is
    /// not known.
    pub walkable: Result<f64, String>,
    /// Number of bytes of code that are mapped.
    pub code_bytes: u64,
}

/// In a file with less code than this no time is spent: so small are the libraries that glibc only
/// keeps for compatibility, and programs that only call a library.
const CODE_BYTES_MIN: u64 = 4096;

impl ElfFacts {
    /// Whether the file has so little code that its names do not matter.
    pub fn is_tiny(&self) -> bool {
        self.code_bytes < CODE_BYTES_MIN
    }
}

/// Reads what an ELF file offers. The error says why it cannot be read.
pub fn inspect_elf(file: &File, source: &FileSource<'_>) -> Result<ElfFacts, String> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).map_err(|error| error.to_string())?;
    let is_filled = |name| elf.section_by_name(name).is_some_and(|s| s.size() > 0);
    let build_id = elf.build_id().ok().flatten().map(hexadecimal);
    let symbols = match (is_filled(".symtab"), is_filled(".dynsym")) {
        (true, _) => Symbols::Symtab,
        (false, true) => Symbols::Dynsym,
        (false, false) => Symbols::None,
    };
    Ok(ElfFacts {
        is_64_bit: elf.is_64(),
        build_id,
        symbols,
        has_eh_frame: is_filled(".eh_frame"),
        walkable: walkable(file, source).map_err(|error| error.to_string()),
        code_bytes: code_bytes(file).unwrap_or(0),
    })
}

/// Returns the share of the code, from 0 to 1, that can be unwound, by the same table that is used
/// for sampling.
fn walkable(file: &File, source: &FileSource<'_>) -> Result<f64, symbolize::OpenError> {
    let object = symbolize::object::Object::read(file)?;
    let debug_files = DebugFiles::of(source, probe::files::of_targets());
    let (table, _) = UnwindTable::read_mapped(&object, &debug_files)?;
    let covered = table.covered_bytes();
    let code = code_bytes(file)?;
    Ok((covered as f64 / code.max(1) as f64).min(1.0))
}

/// Returns the number of bytes of the file that are mapped as executable.
fn code_bytes(file: &File) -> Result<u64, symbolize::OpenError> {
    let object = symbolize::object::Object::read(file)?;
    let code = object
        .program_headers()
        .iter()
        .filter(|header| header.is_load() && header.is_executable());
    Ok(code.map(|header| header.filesz).sum())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    #[test]
    fn reads_this_very_binary() {
        let file = File::open("/proc/self/exe").unwrap();
        let facts = inspect_elf(&file, &FileSource::new(Path::new("/proc/self/exe"))).unwrap();
        assert_eq!(facts.is_64_bit, cfg!(target_pointer_width = "64"));
        assert_eq!(facts.symbols, Symbols::Symtab);
        assert!(facts.has_eh_frame);
        assert!(facts.walkable.unwrap() > 0.9);
    }

    #[test]
    fn anything_else_is_an_error_and_never_a_panic() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        for content in [
            &b""[..],
            b"#!/bin/sh\n",
            b"\x7fELF",
            &own[..64],
            &own[..4096],
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content).unwrap();
            let answer = inspect_elf(&file, &FileSource::new(Path::new("/nonexistent")));
            assert!(answer.is_err() || content.len() >= 64, "{content:?}");
        }
    }
}
