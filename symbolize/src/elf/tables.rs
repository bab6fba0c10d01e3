//! The symbol tables of a file: finds them, and reads their symbols.

use object::elf;

use super::dynamic;
use super::place::{FileRange, SYMBOLS_MAX, TablePlace, within_file};
use crate::OpenError;
use crate::object::{Object, SYMBOL};

/// The symbol tables of a file.
#[derive(Debug, Default)]
pub struct Tables {
    /// Place of `.symtab`, which stripped files do not have.
    pub full: Option<TablePlace>,
    /// Place of `.dynsym`, the imported and exported symbols.
    pub dynamic: Option<TablePlace>,
}

/// Finds the symbol tables by their section headers, and `.dynsym` by the dynamic section if no
/// section header is for it.
pub fn find(object: &Object) -> Tables {
    let by_section = |kind| {
        let section = object.sections().iter().find(|s| s.is_kind(kind))?;
        let strings = object.sections().get(section.link as usize)?;
        let whole = section.has_data() && strings.is_kind(elf::SHT_STRTAB);
        whole.then(|| TablePlace {
            symbols: section.into(),
            strings: within_file(object, strings.into()),
            versions: None,
        })
    };
    let versions = object
        .sections()
        .iter()
        .into_iter()
        .find(|s| s.is_kind(elf::SHT_GNU_VERSYM));
    let dynamic = by_section(elf::SHT_DYNSYM).map(|table| TablePlace {
        versions: versions.map(FileRange::from),
        ..table
    });
    Tables {
        full: by_section(elf::SHT_SYMTAB).filter(|table| table.symbols.size != 0),
        dynamic: dynamic.or_else(|| dynamic::symbols(object)),
    }
}

/// Number of symbols that are read at once.
const PIECE: u64 = 4096;

/// Calls `take` with the symbols of a table, widened, piece by piece. Used for tables that are read
/// only once.
pub fn read_pieces(
    object: &Object,
    place: FileRange,
    mut take: impl FnMut(&[u8]) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let end = check(object, place)?;
    let piece_bytes = PIECE * object.class().size_of(&SYMBOL) as u64;
    let mut buffer = vec![0; place.size.min(piece_bytes) as usize];
    for start in (place.offset..end).step_by(piece_bytes as usize) {
        let piece = &mut buffer[..(end - start).min(piece_bytes) as usize];
        if object.source().read_some(start, piece) < piece.len() {
            return Err(OpenError::Read {
                what: "symbol table",
                source: std::io::ErrorKind::UnexpectedEof.into(),
            });
        }
        take(&object.class().widen(&SYMBOL, &*piece))?;
    }
    Ok(())
}

/// Returns the end of a symbol table in the file; an error if it is too large, or not in the file.
pub fn check(object: &Object, place: FileRange) -> Result<u64, OpenError> {
    if place.size > symbols_bytes_max(object) {
        return Err(OpenError::Refused("symbol table"));
    }
    let end = place.offset.checked_add(place.size);
    let end = end.filter(|end| *end <= object.source().len());
    end.ok_or(OpenError::Damaged("symbol table"))
}

/// The symbols that are read more than once, widened.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Symbols of `.dynsym` in the 64-bit layout, `SYMBOL_BYTES` each.
    pub dynamic: Vec<u8>,
    /// `.gnu.version`: either one entry for each symbol of `dynamic`, or empty.
    pub versions: Vec<u8>,
}

/// Reads the symbols at `dynamic`, which are those of `.dynsym` or none, and the versions of `.dynsym`.
/// `.symtab` is not among them, because it is read only once, by [`read_pieces`]. Versions that cannot
/// be read are left out.
pub fn load(
    object: &Object,
    tables: &Tables,
    dynamic: Option<TablePlace>,
) -> Result<Loaded, OpenError> {
    let read = |place: Option<FileRange>, what| match place {
        Some(place) if place.size > symbols_bytes_max(object) => Err(OpenError::Refused(what)),
        Some(place) => object.source().read(place.offset, place.size, what),
        None => Ok(Vec::new()),
    };
    let versions = tables.dynamic.and_then(|table| table.versions);
    let dynamic = read(dynamic.map(|t| t.symbols), "dynamic symbol table")?;
    Ok(Loaded {
        dynamic: object.class().widen(&SYMBOL, dynamic).into_owned(),
        versions: read(versions, "symbol versions").unwrap_or_default(),
    })
}

/// Maximum size of a symbol table in this file.
pub fn symbols_bytes_max(object: &Object) -> u64 {
    SYMBOLS_MAX * object.class().size_of(&SYMBOL) as u64
}
