//! The *range table* of a file: for each address the function, the functions
//! inlined there, and their places in source text.
//!
//! ```text
//! pages ──► starts ──► places ──► text       where in the file, by 1 KiB and more
//!           u32        function, file, line, the place that inlined it (parent)
//! ```
//!
//! It is one run of bytes, the same in memory and on disk (`format`), read
//! without being decoded: a file's blocks are read when they are needed, and
//! checked against their sums then. Whatever is in it, reading it ends: every
//! index is checked, every chain has a bound.
//!
//! | module | holds |
//! |---|---|
//! | `format` | the layout |
//! | `unit` | the ranges of one unit, as they are found |
//! | `write` | units, symbols and segments as such bytes |
//! | `intern` | each text once |
//! | `blocks` | bytes in memory, or in a file, checked |
//! | `symbols` | names for code without debug information |

mod blocks;
mod format;
mod intern;
mod symbols;
pub mod unit;
mod write;

use std::fs::File;

use crate::address::{Segment, Segments};
use crate::{FileOffset, LinkAddr, OpenError};

use blocks::{BLOCK_BYTES, Blocks};
use format::{Directory, NONE, Part, TEXT_BYTES_MAX};
pub use write::{Extras, SymbolEntry, write};

/// Compilers inline no deeper than some dozens.
pub const CHAIN_MAX: usize = 128;

/// One function of the chain that an address stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame<'t> {
    /// As the compiler wrote it, if it is known.
    pub function: Option<&'t [u8]>,
    /// The directory of `file`, empty if that is not known, or absolute.
    pub directory: &'t [u8],
    /// Empty if it is not known.
    pub file: &'t [u8],
    /// 0 if it is not known.
    pub line: u32,
    /// 0 if it is not known, which it never is in tables on disk.
    pub column: u32,
}

impl SourceFrame<'_> {
    /// Directory and file together; empty if they are not known.
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
    /// A table that was just written, or bytes that claim to be one.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Table, OpenError> {
        Table::open(Blocks::Memory(bytes))
    }

    /// A table on disk. The file must be ours: nobody else may write to it.
    pub fn from_file(file: File) -> Result<Table, OpenError> {
        Table::open(Blocks::file(file)?)
    }

    fn open(mut blocks: Blocks) -> Result<Table, OpenError> {
        let directory = Directory::read(&mut blocks)?;
        let mut table = Table {
            blocks,
            directory,
            segments: Segments::default(),
        };
        table.segments = Segments::new(table.read_segments());
        Ok(table)
    }

    /// The functions that the code at `addr` stands for, innermost first.
    /// Empty where there is no debug information.
    pub fn find(&self, addr: LinkAddr) -> Frames<'_> {
        Frames {
            table: self,
            next: self.place_at(addr.0).unwrap_or(NONE),
            left: CHAIN_MAX,
        }
    }

    /// The segments of the file that the table was made of.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The link address of the code at `offset`.
    pub fn to_link(&self, offset: FileOffset) -> Option<LinkAddr> {
        self.segments.to_link(offset)
    }

    /// What identifies the file that the table was made of.
    pub fn key(&self) -> &[u8] {
        self.text(self.directory.key).unwrap_or_default()
    }

    /// The same of the debug file that it was made of, or of the file itself.
    pub fn source(&self) -> &[u8] {
        self.text(self.directory.source).unwrap_or_default()
    }

    /// Whether a block was met that is not what was written.
    pub fn is_damaged(&self) -> bool {
        self.blocks.is_damaged()
    }

    /// How many ranges it has.
    pub fn ranges(&self) -> u64 {
        self.directory.count(Part::Starts)
    }

    pub fn heap_bytes(&self) -> usize {
        self.blocks.heap_bytes()
    }

    /// The number of the place at an address.
    fn place_at(&self, addr: u64) -> Option<u32> {
        let rel = addr.checked_sub(self.directory.base)?;
        let rel = u32::try_from(rel).ok()?;
        let page = u64::from(rel >> self.directory.page_shift);
        let pages = self.directory.count(Part::Pages);
        if page + 1 >= pages {
            return None;
        }
        let low = self.word(Part::Pages, page)?;
        let high = self.word(Part::Pages, page + 1)?;
        let index = self.last_at_or_before(Part::Starts, 1, low, high, rel)?;
        self.word(Part::PlaceOf, index)
    }

    /// The last record of `part` in `low..=high` whose first word is no more
    /// than `value`.
    fn last_at_or_before(
        &self,
        part: Part,
        words: u64,
        low: u32,
        high: u32,
        value: u32,
    ) -> Option<u64> {
        let end = self.directory.count(part);
        let (mut low, mut high) = (u64::from(low), (u64::from(high) + 1).min(end));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(part, middle * words)? <= value {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low.checked_sub(1)
    }

    /// The word at `index` of a part, counted in words.
    fn word(&self, part: Part, index: u64) -> Option<u32> {
        self.blocks.word(self.directory.word_at(part, index)?)
    }

    fn text(&self, offset: u32) -> Option<&[u8]> {
        if offset == NONE {
            return None;
        }
        let at = self.directory.text_at(offset)?;
        let (len, rest) = self.blocks.rest(at)?.split_first_chunk()?;
        let len = u32::from_le_bytes(*len) as usize;
        if let Some(text) = rest.get(..len) {
            return Some(text);
        }
        // It may be longer than a block; else this is no text.
        let is_long = len <= TEXT_BYTES_MAX && 4 + len > BLOCK_BYTES;
        let run = is_long.then(|| self.blocks.run(at, 4 + len))??;
        Some(&run[4..])
    }

    /// The words of a whole record.
    #[inline]
    fn record<const WORDS: usize>(&self, part: Part, index: u64) -> Option<[u32; WORDS]> {
        let at = self.directory.word_at(part, index * WORDS as u64)?;
        let bytes = self.blocks.rest(at)?.get(..WORDS * 4)?;
        let (words, _) = bytes.as_chunks::<4>();
        let mut record = [0; WORDS];
        for (word, bytes) in record.iter_mut().zip(words) {
            *word = u32::from_le_bytes(*bytes);
        }
        Some(record)
    }

    fn read_segments(&self) -> Vec<Segment> {
        let words = format::SEGMENT_WORDS;
        let long = |index| {
            let low = self.word(Part::Segments, index)?;
            let high = self.word(Part::Segments, index + 1)?;
            Some(u64::from(high) << 32 | u64::from(low))
        };
        let segment = |index: u64| {
            Some(Segment {
                offset: long(index)?,
                vaddr: long(index + 2)?,
                filesz: long(index + 4)?,
                executable: long(index + 6)? != 0,
            })
        };
        let count = self.directory.count(Part::Segments).min(256);
        (0..count).filter_map(|i| segment(i * words)).collect()
    }
}

/// The chain of an address, innermost first.
#[derive(Debug, Clone)]
pub struct Frames<'t> {
    table: &'t Table,
    next: u32,
    left: usize,
}

impl<'t> Iterator for Frames<'t> {
    type Item = SourceFrame<'t>;

    fn next(&mut self) -> Option<SourceFrame<'t>> {
        if self.next == NONE || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let table = self.table;
        let place = u64::from(self.next);
        let [function, file, line, next] = table.record(Part::Places, place)?;
        self.next = next;
        let [directory, name] = match file {
            NONE => [NONE; 2],
            file => table.record(Part::Files, file.into()).unwrap_or([NONE; 2]),
        };
        Some(SourceFrame {
            function: table.text(function),
            directory: table.text(directory).unwrap_or_default(),
            file: table.text(name).unwrap_or_default(),
            line,
            column: table.word(Part::Columns, place).unwrap_or(0),
        })
    }
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Table>();
};
