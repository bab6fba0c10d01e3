//! The *range table* of a file: for each address the function, the functions inlined there, and
//! their source locations.
//!
//! ```text
//! index ──► leaf ────────────────────────────► files, text
//! in memory starts, and for each a place:
//!           function, file, line, the place
//!           that inlined it (parent)
//! ```
//!
//! It is one sequence of bytes, the same in memory and on disk (`format`), and is used without
//! being decoded: blocks of a file are read on demand, and their checksums are verified then.
//! Reading terminates for any contents: every index is checked, and every chain has a limit.
//!
//! | module | holds |
//! |---|---|
//! | `format` | the layout, and the index |
//! | `leaf` | all about a range of addresses, in one block |
//! | `place` | a function and a source location |
//! | `unit` | the leaves of one unit, before they are part of a table |
//! | `write` | writes units, symbols and segments as a table |
//! | `pool` | texts and files of all units while they are read |
//! | `intern` | stores each text once |
//! | `blocks` | the bytes in memory, or in a file, with checksums |
//! | `symbols` | names for code without debug information |

mod blocks;
mod format;
mod intern;
pub(crate) mod leaf;
pub(crate) mod place;
pub mod pool;
mod symbols;
pub mod unit;
mod write;

use std::fs::File;

use crate::address::Segments;
use crate::bytes::u32_at;
use crate::{FileOffset, LinkAddr, OpenError};

use blocks::{BLOCK_BYTES, Blocks};
pub(crate) use format::TEXT_BYTES_MAX;
use format::{Directory, FILE_BYTES, NONE, TablePart};
use leaf::{Leaf, NO_PLACE, PlaceBytes};
pub use write::{Extras, SymbolEntry, Symbols, write, write_to};

/// Maximum length of a chain. Compilers inline at most some dozens of levels.
pub const CHAIN_MAX: usize = 128;

/// One of the functions at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame<'t> {
    /// Name as the compiler wrote it; `None` if unknown.
    pub function: Option<&'t [u8]>,
    /// Directory of `file`; empty if unknown, or if `file` is absolute.
    pub directory: &'t [u8],
    /// Path of the source file; empty if unknown.
    pub file: &'t [u8],
    /// Line; 0 if unknown.
    pub line: u32,
    /// Column; 0 if unknown, as it always is in the tables of the live program.
    pub column: u32,
}

impl SourceFrame<'_> {
    /// Joins directory and file; empty if they are unknown.
    pub fn path(&self) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.directory.len() + 1 + self.file.len());
        path.extend_from_slice(self.directory);
        if !path.is_empty() && !self.file.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(self.file);
        path
    }
}

/// The table of one file, or of one unit of it.
#[derive(Debug)]
pub struct Table {
    blocks: Blocks,
    directory: Directory,
    segments: Segments,
}

impl Table {
    /// Opens a table that was just written, or untrusted bytes in this format.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Table, OpenError> {
        Table::open(Blocks::Memory(bytes))
    }

    /// Opens a table on disk. No other user may be able to write to the file.
    pub fn from_file(file: File) -> Result<Table, OpenError> {
        Table::open(Blocks::file(file)?)
    }

    fn open(mut blocks: Blocks) -> Result<Table, OpenError> {
        let directory = Directory::read(&mut blocks)?;
        let segments = Segments::new(directory.segments());
        Ok(Table {
            blocks,
            directory,
            segments,
        })
    }

    /// Returns the functions at `addr`, innermost first. Empty if there is no debug information.
    pub fn find(&self, addr: LinkAddr) -> Frames<'_> {
        let (places, next) = self.place_at(addr.0).unwrap_or((&[], NO_PLACE));
        Frames {
            table: self,
            places,
            next,
            left: CHAIN_MAX,
        }
    }

    /// The segments of the file that the table describes.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the link address of the code at `offset`.
    pub fn to_link(&self, offset: FileOffset) -> Option<LinkAddr> {
        self.segments.to_link(offset)
    }

    /// The identity of the file that the table describes.
    pub fn key(&self) -> &[u8] {
        self.directory.key()
    }

    /// The identity of the debug file that the table was made of, or of the file itself.
    pub fn source(&self) -> &[u8] {
        self.directory.source()
    }

    /// Whether a block with a wrong checksum was found.
    pub fn is_damaged(&self) -> bool {
        self.blocks.is_damaged()
    }

    /// The file on disk; `None` if the table is in memory.
    pub(crate) fn on_disk(&self) -> Option<&File> {
        self.blocks.as_file()
    }

    /// Number of ranges.
    pub fn ranges(&self) -> u64 {
        self.directory.ranges
    }

    /// Start of each range, rising. Damaged parts are left out.
    pub fn starts(&self) -> impl Iterator<Item = LinkAddr> + '_ {
        let leaves = (0..self.directory.leaves()).filter_map(|leaf| {
            let leaf = Leaf::new(self.block(TablePart::Leaves, leaf)?)?;
            Some(leaf.ranges().map(|(start, _)| start))
        });
        let base = self.directory.base;
        leaves
            .flatten()
            .filter_map(move |start| Some(LinkAddr(base.checked_add(start.into())?)))
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.blocks.heap_bytes() + self.directory.heap_bytes()
    }

    /// Returns the index of the place at an address, and the places of its leaf.
    #[inline]
    fn place_at(&self, addr: u64) -> Option<(&[PlaceBytes], u16)> {
        let rel = addr.checked_sub(self.directory.base)?;
        let rel = u32::try_from(rel).ok()?;
        let leaf = self.directory.leaf_at(rel)?;
        let leaf = Leaf::new(self.block(TablePart::Leaves, leaf)?)?;
        Some((leaf.places(), leaf.place_at(rel)?))
    }

    /// Reads a block of a part.
    #[inline]
    fn block(&self, part: TablePart, index: usize) -> Option<&[u8]> {
        let (at, len) = self.directory.block_at(part, index)?;
        self.blocks.rest(at)?.get(..len)
    }

    #[inline]
    fn record<const BYTES: usize>(&self, part: TablePart, index: u64) -> Option<&[u8; BYTES]> {
        let at = self.directory.record_at(part, index, BYTES)?;
        self.blocks.rest(at)?.first_chunk()
    }

    fn text(&self, offset: u32) -> Option<&[u8]> {
        if offset == NONE {
            return None;
        }
        let at = self
            .directory
            .record_at(TablePart::Text, offset.into(), 4)?;
        let (len, rest) = self.blocks.rest(at)?.split_first_chunk()?;
        let len = u32::from_le_bytes(*len) as usize;
        if let Some(text) = rest.get(..len) {
            return Some(text);
        }
        // A text may be longer than a block; otherwise the length is invalid.
        let is_long = len <= TEXT_BYTES_MAX && 4 + len > BLOCK_BYTES;
        let run = is_long.then(|| self.blocks.run(at, 4 + len))??;
        Some(&run[4..])
    }

    /// Returns directory and name of a file.
    #[inline]
    fn file(&self, file: u32) -> Option<(&[u8], &[u8])> {
        if file == NONE {
            return None;
        }
        let record: &[u8; FILE_BYTES] = self.record(TablePart::Files, file.into())?;
        let text = |at| self.text(u32_at(record, at)).unwrap_or_default();
        Some((text(0), text(4)))
    }
}

/// Iterates over the functions at an address, innermost first.
#[derive(Debug, Clone)]
pub struct Frames<'t> {
    table: &'t Table,
    places: &'t [PlaceBytes],
    next: u16,
    left: usize,
}

impl<'t> Iterator for Frames<'t> {
    type Item = SourceFrame<'t>;

    fn next(&mut self) -> Option<SourceFrame<'t>> {
        if self.next == NO_PLACE || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (place, next) = leaf::place(self.places.get(usize::from(self.next))?);
        self.next = next;
        let (directory, file) = self.table.file(place.file).unwrap_or_default();
        Some(SourceFrame {
            function: self.table.text(place.function),
            directory,
            file,
            line: place.line,
            column: place.column,
        })
    }
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Table>();
};
