//! What an ELF file offers a profiler: names of functions, and stacks that can be walked.
//!
//! A process without rights finds it out, and sends it to the one that asked:
//!
//! ```text
//! whether it has wide addresses; the symbol table; whether it has .eh_frame; whether there is a debug
//! file; its build-id; the bytes of its code; those that can be walked, or why that is not known
//! ```
//!
//! A hostile file may have taken over the process that answers, so nothing in the answer is
//! trusted.

use std::fs::File;

use crate::debug_file::{self, DebugFiles};
use crate::object::{Class, Object};
use crate::unwind::UnwindTable;
use crate::wire::{Taken, put_bytes, put_u64};
use crate::{OpenError, Reason};

/// Maximum length of a build-id in an answer; longer ones are cut. Those of linkers have 20 bytes.
const BUILD_ID_BYTES_MAX: usize = 64;

/// The symbol table that functions are named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolTable {
    /// `.symtab` names all functions.
    Symtab,
    /// `.dynsym` names exported functions only.
    Dynsym,
    /// There is none.
    None,
}

impl SymbolTable {
    const ALL: [SymbolTable; 3] = [SymbolTable::Symtab, SymbolTable::Dynsym, SymbolTable::None];
}

/// What an ELF file offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Whether its addresses have 64 bits.
    pub is_64_bit: bool,
    /// The symbol table that its functions are named by.
    pub symbols: SymbolTable,
    /// Whether it has unwind information (`.eh_frame`).
    pub has_eh_frame: bool,
    /// Whether there is debug information besides the file's own: a separate file that fits, or
    /// compressed symbols in it.
    pub has_debug_file: bool,
    /// The build-id; `None` if it has none.
    pub build_id: Option<Vec<u8>>,
    /// Number of bytes that are mapped as code.
    pub code_bytes: u64,
    /// How many bytes of code have rules by which stacks are walked; or why that is not known.
    pub walkable_bytes: Result<u64, Reason>,
}

impl FileFacts {
    /// Reads what a file offers; `places` are where its debug file may be.
    pub fn read(file: &File, places: &DebugFiles) -> Result<FileFacts, OpenError> {
        let object = Object::read(file)?;
        let is_filled = |name| {
            let section = object.section_by_name(name);
            section.is_some_and(|section| section.size > 0)
        };
        let symbols = match (is_filled(b".symtab"), is_filled(b".dynsym")) {
            (true, _) => SymbolTable::Symtab,
            (false, true) => SymbolTable::Dynsym,
            (false, false) => SymbolTable::None,
        };
        let headers = object.program_headers().iter();
        let code = headers.filter(|header| header.is_load() && header.is_executable());
        let code_bytes = code.fold(0u64, |sum, header| sum.saturating_add(header.filesz));
        let table = UnwindTable::read_mapped(&object, places);
        let has_mini = || matches!(debug_file::mini(&object, places.files()), Ok(Some(_)));
        Ok(FileFacts {
            is_64_bit: object.class() == Class::Wide,
            symbols,
            has_eh_frame: is_filled(b".eh_frame"),
            has_debug_file: places.separate(&object).is_some() || has_mini(),
            build_id: object.build_id(),
            code_bytes,
            walkable_bytes: table
                .map(|(table, _)| table.covered_bytes())
                .map_err(|error| error.reason()),
        })
    }

    /// Encodes it for another process.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![
            u8::from(self.is_64_bit),
            self.symbols as u8,
            u8::from(self.has_eh_frame),
            u8::from(self.has_debug_file),
        ];
        // An empty one stands for `None`, as no build-id is empty.
        let build_id = self.build_id.as_deref().unwrap_or_default();
        put_bytes(
            &mut out,
            &build_id[..build_id.len().min(BUILD_ID_BYTES_MAX)],
        );
        put_u64(&mut out, self.code_bytes);
        match self.walkable_bytes {
            Ok(bytes) => {
                out.push(1);
                put_u64(&mut out, bytes);
            }
            Err(reason) => out.extend([0, reason as u8]),
        }
        out
    }

    /// Decodes the result of [`FileFacts::to_bytes`]; `None` if it is malformed.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<FileFacts> {
        let mut bytes = Taken(bytes);
        let facts = FileFacts {
            is_64_bit: bytes.u8()? != 0,
            symbols: *SymbolTable::ALL.get(usize::from(bytes.u8()?))?,
            has_eh_frame: bytes.u8()? != 0,
            has_debug_file: bytes.u8()? != 0,
            build_id: Some(bytes.bytes()?)
                .filter(|id| id.len() <= BUILD_ID_BYTES_MAX)
                .filter(|id| !id.is_empty())
                .map(<[u8]>::to_vec),
            code_bytes: bytes.u64()?,
            walkable_bytes: match bytes.u8()? {
                1 => Ok(bytes.u64()?),
                0 => Err(*Reason::ALL.get(usize::from(bytes.u8()?))?),
                _ => return None,
            },
        };
        bytes.0.is_empty().then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileSource, Files};
    use proptest::prelude::*;
    use std::path::Path;

    fn facts(walkable_bytes: Result<u64, Reason>, build_id: Option<Vec<u8>>) -> FileFacts {
        FileFacts {
            is_64_bit: true,
            symbols: SymbolTable::Dynsym,
            has_eh_frame: true,
            has_debug_file: false,
            build_id,
            code_bytes: 77,
            walkable_bytes,
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        for walkable_bytes in [Ok(70), Err(Reason::Refused)] {
            for build_id in [None, Some(vec![7; 20])] {
                let facts = facts(walkable_bytes, build_id);
                let bytes = facts.to_bytes();
                assert_eq!(FileFacts::from_bytes(&bytes), Some(facts));
                for len in 0..bytes.len() {
                    assert_eq!(FileFacts::from_bytes(&bytes[..len]), None, "{len}");
                }
                assert_eq!(FileFacts::from_bytes(&[&bytes[..], &[0]].concat()), None);
            }
        }
    }

    #[test]
    fn reads_this_very_binary() {
        let path = Path::new("/proc/self/exe");
        let places = DebugFiles::of(&FileSource::new(path), Files::default());
        let facts = FileFacts::read(&File::open(path).unwrap(), &places).unwrap();
        assert_eq!(facts.is_64_bit, cfg!(target_pointer_width = "64"));
        assert_eq!(facts.symbols, SymbolTable::Symtab);
        assert!(facts.has_eh_frame);
        let walkable = facts.walkable_bytes.unwrap();
        assert!(
            walkable as f64 / facts.code_bytes as f64 > 0.9,
            "{walkable}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            _ = FileFacts::from_bytes(&bytes);
        }
    }
}
