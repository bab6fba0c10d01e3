//! What an ELF file offers: names of functions, and stacks that can be walked. A process without
//! rights finds it out, because anybody may have made the file.

use std::fs::File;
use symbolize::FileSource;
use symbolize::Reason;
use symbolize::debug_file::DebugFiles;
use symbolize::parser::{FileFacts, SymbolTable, facts_order};

/// What an ELF file says about names and unwinding.
#[derive(Debug, Clone, PartialEq)]
pub struct ElfFacts {
    pub is_64_bit: bool,
    /// The build-id, in hexadecimal.
    pub build_id: Option<String>,
    pub symbols: SymbolTable,
    pub has_eh_frame: bool,
    /// The share of the code, from 0 to 1, that can be walked without frame pointers; or why it is
    /// not known.
    pub walkable: Result<f64, String>,
    /// Number of bytes of code that are mapped.
    pub code_bytes: u64,
    /// Whether debug information was found in a separate file, or compressed in this one.
    pub has_debug_file: bool,
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

/// Finds out what an ELF file offers. The error says why that is not possible.
pub fn inspect_elf(file: &File, source: &FileSource<'_>) -> Result<ElfFacts, String> {
    let why = |reason: Reason| reason.explain().trim_end_matches('.').to_string();
    let way = probe::files::of_targets();
    let file = file.try_clone().map_err(|error| error.to_string())?;
    let facts = facts_order::ask(file, &DebugFiles::of(source, &way), &way).map_err(why)?;
    let FileFacts {
        is_64_bit,
        symbols,
        has_eh_frame,
        has_debug_file,
        build_id,
        code_bytes,
        walkable_bytes,
    } = facts;
    let share = |bytes: u64| (bytes as f64 / code_bytes.max(1) as f64).min(1.0);
    Ok(ElfFacts {
        is_64_bit,
        build_id: build_id.as_deref().map(hexadecimal),
        symbols,
        has_eh_frame,
        walkable: walkable_bytes.map(share).map_err(why),
        code_bytes,
        has_debug_file,
    })
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
        assert_eq!(facts.symbols, SymbolTable::Symtab);
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
