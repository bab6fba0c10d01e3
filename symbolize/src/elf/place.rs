//! Where in a file a symbol table and what belongs to it are.

use crate::LinkAddr;
use crate::object::{Object, SYMBOL, Section};

/// Of a symbol, widened.
pub const SYMBOL_BYTES: usize = SYMBOL.wide;

/// The largest browsers have 2 million. 256 MiB.
pub const SYMBOLS_MAX: u64 = (256 << 20) / SYMBOL_BYTES as u64;

/// A part of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileRange {
    pub offset: u64,
    pub size: u64,
}

impl From<&Section> for FileRange {
    fn from(section: &Section) -> FileRange {
        FileRange {
            offset: section.offset,
            size: section.size,
        }
    }
}

/// A symbol table and the string table that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePlace {
    pub symbols: FileRange,
    pub strings: FileRange,
    /// `.gnu.version`: for each symbol which version it is.
    pub versions: Option<FileRange>,
}

/// A string table can be read in part, so its size need not be believed.
pub fn within_file(object: &Object, place: FileRange) -> FileRange {
    let rest = object.source().len().saturating_sub(place.offset);
    // Names have 32-bit offsets.
    let size = place.size.min(rest).min(u64::from(u32::MAX));
    FileRange { size, ..place }
}

/// The place of `size` bytes at a link address.
pub fn place_at(object: &Object, addr: u64, size: u64) -> Option<FileRange> {
    let offset = object.segments().to_file(LinkAddr(addr))?.0;
    Some(FileRange { offset, size })
}
