//! The places of a symbol table and of what belongs to it.

use crate::LinkAddr;
use crate::object::{Object, SYMBOL, Section};

/// Size of a symbol after it was widened to the 64-bit layout.
pub const SYMBOL_BYTES: usize = SYMBOL.wide;

/// Maximum number of symbols, which take 256 MiB. The largest browsers have 2 million.
pub const SYMBOLS_MAX: u64 = (256 << 20) / SYMBOL_BYTES as u64;

/// A range of bytes in the file: its offset from the start of the file, and its size.
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

/// A symbol table and its string table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePlace {
    pub symbols: FileRange,
    pub strings: FileRange,
    /// `.gnu.version`: the version number of each symbol.
    pub versions: Option<FileRange>,
}

/// Cuts a range to the file's size. A string table can be read in part, so its stated size need not
/// be right.
pub fn within_file(object: &Object, place: FileRange) -> FileRange {
    let rest = object.source().len().saturating_sub(place.offset);
    // Offsets of names have 32 bits.
    let size = place.size.min(rest).min(u64::from(u32::MAX));
    FileRange { size, ..place }
}

/// Returns the place in the file of `size` bytes at a link address.
pub fn place_at(object: &Object, addr: u64, size: u64) -> Option<FileRange> {
    let offset = object.segments().to_file(LinkAddr(addr))?.0;
    Some(FileRange { offset, size })
}
