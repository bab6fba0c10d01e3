//! The layout of a table, little-endian throughout:
//!
//! ```text
//! leaves    blocks with all ranges, and where each is from (`leaf`)
//! symbols   records: start, size, name, how far into its function
//! files     records: directory, name
//! text      each a length and its bytes
//! index     first address of each leaf, and of each block of symbols; CRC-32
//!           of each block; segments; key; source
//! trailer   magic, version, where and how long everything is, CRC-32 of index
//!           and trailer
//! ```
//!
//! The index and the trailer are read when a file is opened, usually with one system call. Nothing
//! else is read then: the index says which block has an answer.
//!
//! Each part starts with a block. The size of a block is a multiple of every record's size, and
//! texts are placed so that none crosses the end of a block, so everything lies within one block.
//! Only a text that is longer than a block starts at a block and continues in the next ones. A
//! table in memory keeps to this only for leaves.

use crate::crc::crc32;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::blocks::{BLOCK_BYTES, Blocks};
use crate::OpenError;
use crate::address::Segment;
use crate::bytes::{u32_at, u64_at};

/// Last eight bytes of a table.
pub const MAGIC: [u8; 8] = *b"PROFSYM1";
/// Version of the format; a new one needs a new cache directory.
pub const VERSION: u32 = 4;

const OTHER_VERSION: &str = "a table that another version of proftop made, build it again";

/// Trailer: base; parts: offset, length; number of ranges; length of the index; blocks, segments,
/// length of key and source; checksum, version, reserved, magic.
pub const TRAILER_BYTES: usize = 128;
/// Offset of the parts in the trailer: for each, its offset and its length, 8 bytes each.
pub const PARTS_AT: usize = 8;
/// Offset of the number of ranges, 8 bytes.
pub const RANGES_AT: usize = 72;
/// Offset of the length of the index, 4 bytes.
pub const INDEX_BYTES_AT: usize = 80;
/// Offset of the numbers of blocks and segments, and of the lengths of key and source, 4 bytes
/// each.
pub const COUNTS_AT: usize = 84;
/// Offset of the checksum, 4 bytes: that of index and trailer with 0 in its place.
pub const SUM_AT: usize = 100;
/// Offset of the version, 4 bytes.
pub const VERSION_AT: usize = 104;
/// Offset of the magic, 8 bytes.
pub const MAGIC_AT: usize = 120;

/// Number of body bytes for each byte of the index: at most two words of the index per block, and
/// little else.
const BODY_BYTES_EACH: u64 = BLOCK_BYTES as u64 / 8;
const OTHER_BYTES: u64 = 1 << 10;

/// The number for no place, no text, no file.
pub const NONE: u32 = u32::MAX;

/// Size of a symbol: start, size, name, distance of `start` from the function's start.
pub const SYMBOL_BYTES: usize = 16;
/// Size of a file: directory, name.
pub const FILE_BYTES: usize = 8;
/// Size of a segment: offset, vaddr, filesz, executable, of 64 bits each.
pub const SEGMENT_BYTES: usize = 32;
const SEGMENTS_MAX: usize = 256;

/// Maximum length of a text; longer ones are cut, like names of symbol tables. Templates and
/// closures have names of some 10 KiB at times.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Cuts a text to the maximum length.
pub fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

/// The parts of a table, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum TablePart {
    /// Address ranges and their places, in leaves.
    Leaves,
    /// The file's own symbol table, if the table was written with it.
    Symbols,
    /// Source files.
    Files,
    /// Names of functions, files and directories.
    Text,
}

/// Number of parts.
pub const PARTS: usize = 4;

/// Index and trailer after verification: every part lies within the bytes.
#[derive(Debug)]
pub struct Directory {
    /// Lowest link address; addresses in leaves are relative to it.
    pub base: u64,
    /// Number of ranges in all leaves.
    pub ranges: u64,
    parts: [(u64, u64); PARTS],
    /// The index as it was read, with the trailer.
    index: Vec<u8>,
    leaf_starts: Within,
    pages: OnceLock<Pages>,
    /// Number of look-ups so far, until pages are made.
    searches: AtomicU32,
    symbol_starts: Within,
    segments: Within,
    key: Within,
    source: Within,
}

/// A range of the index.
type Within = std::ops::Range<usize>;

/// Splits the index, from its start on.
struct Cut {
    at: usize,
    end: usize,
}

impl Cut {
    fn next(&mut self, count: u64, bytes: usize) -> Option<Within> {
        let len = usize::try_from(count).ok()?.checked_mul(bytes)?;
        let from = self.at;
        self.at = from.checked_add(len).filter(|at| *at <= self.end)?;
        Some(from..self.at)
    }
}

impl Directory {
    /// Reads index and trailer, and sets the checksums of `blocks`.
    pub fn read(blocks: &mut Blocks) -> Result<Directory, OpenError> {
        let damaged = OpenError::Damaged("symbol table of the cache");
        let len = blocks.len();
        let tail_bytes = len / BODY_BYTES_EACH + OTHER_BYTES;
        let Some(tail) = blocks.tail(len.min(tail_bytes)) else {
            return Err(damaged);
        };
        let trailer = tail
            .last_chunk()
            .filter(|trailer: &&[u8; TRAILER_BYTES]| trailer[MAGIC_AT..] == MAGIC);
        let Some(trailer) = trailer.copied() else {
            return Err(damaged);
        };
        if u32_at(&trailer, VERSION_AT) != VERSION {
            return Err(OpenError::Refused(OTHER_VERSION));
        }
        Directory::read_tail(blocks, tail, &trailer).ok_or(damaged)
    }

    fn read_tail(
        blocks: &mut Blocks,
        mut tail: Vec<u8>,
        trailer: &[u8; TRAILER_BYTES],
    ) -> Option<Directory> {
        let len = blocks.len();
        let index_bytes = u32_at(trailer, INDEX_BYTES_AT);
        let wanted = u64::from(index_bytes) + TRAILER_BYTES as u64;
        let body = len.checked_sub(wanted)?;
        if wanted > tail.len() as u64 {
            tail = blocks.tail(wanted)?;
        }
        let first = tail.len().checked_sub(usize::try_from(wanted).ok()?)?;
        let behind = tail.len() - TRAILER_BYTES;
        if blocks.are_checked() {
            tail[behind + SUM_AT..behind + SUM_AT + 4].fill(0);
            if crc32(&tail[first..]) != u32_at(trailer, SUM_AT) {
                return None;
            }
        }
        let mut parts = [(0, 0); PARTS];
        for (index, part) in parts.iter_mut().enumerate() {
            let at = PARTS_AT + index * 16;
            *part = (u64_at(trailer, at), u64_at(trailer, at + 8));
            part.0.checked_add(part.1).filter(|end| *end <= body)?;
        }
        let count = |number: usize| u64::from(u32_at(trailer, COUNTS_AT + number * 4));
        let in_blocks = |part: TablePart| parts[part as usize].1.div_ceil(BLOCK_BYTES as u64);
        let mut cut = Cut {
            at: first,
            end: behind,
        };
        let leaf_starts = cut.next(in_blocks(TablePart::Leaves), 4)?;
        let symbol_starts = cut.next(in_blocks(TablePart::Symbols), 4)?;
        let sums = cut.next(count(0), 4)?;
        blocks.set_sums(body, &tail[sums])?;
        Some(Directory {
            base: u64_at(trailer, 0),
            ranges: u64_at(trailer, RANGES_AT),
            parts,
            pages: OnceLock::new(),
            searches: AtomicU32::new(0),
            leaf_starts,
            symbol_starts,
            segments: cut.next(count(1), SEGMENT_BYTES)?,
            key: cut.next(count(2), 1)?,
            source: cut.next(count(3), 1)?,
            index: tail,
        })
    }

    /// Number of records in a part.
    pub fn count(&self, part: TablePart, bytes: usize) -> u64 {
        self.parts[part as usize].1 / bytes as u64
    }

    /// Returns the file offset of a record.
    #[inline]
    pub fn record_at(&self, part: TablePart, index: u64, bytes: usize) -> Option<u64> {
        let (offset, len) = self.parts[part as usize];
        let at = index * bytes as u64;
        (at < len).then(|| offset + at)
    }

    /// Returns the file offset and the length of a block.
    #[inline]
    pub fn block_at(&self, part: TablePart, index: usize) -> Option<(u64, usize)> {
        let (offset, len) = self.parts[part as usize];
        let at = (index as u64).checked_mul(BLOCK_BYTES as u64)?;
        let rest = len.checked_sub(at)?;
        Some((offset + at, rest.min(BLOCK_BYTES as u64) as usize))
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.leaf_starts.len() / 4
    }

    /// Returns the leaf for an address, given relative to the base as in leaves.
    #[inline]
    pub fn leaf_at(&self, rel: u32) -> Option<usize> {
        let starts = self.index[self.leaf_starts.clone()].as_chunks().0;
        let near = match self.pages.get() {
            Some(pages) => pages.near(rel, starts.len()),
            None => self.without_pages(starts),
        };
        let before = near.start;
        let behind = before + behind(starts.get(near)?, rel);
        behind.checked_sub(1)
    }

    /// Returns where to search before pages are worthwhile: all leaves.
    #[cold]
    fn without_pages(&self, starts: &[[u8; 4]]) -> Within {
        if self.searches.fetch_add(1, Ordering::Relaxed) == SEARCHES_MAX {
            self.pages.get_or_init(|| Pages::of(starts));
        }
        0..starts.len()
    }

    /// The first address of each block of symbols, minus the base.
    pub fn symbol_starts(&self) -> &[[u8; 4]] {
        self.index[self.symbol_starts.clone()].as_chunks().0
    }

    /// The identity of the file that the table describes.
    pub fn key(&self) -> &[u8] {
        &self.index[self.key.clone()]
    }

    /// The identity of the debug file that the table was made of, or of the file itself.
    pub fn source(&self) -> &[u8] {
        &self.index[self.source.clone()]
    }

    /// Returns the loaded segments of the file that the table describes, at most 256.
    pub fn segments(&self) -> Vec<Segment> {
        let (records, _) = self.index[self.segments.clone()].as_chunks::<SEGMENT_BYTES>();
        let segment = |record: &[u8; SEGMENT_BYTES]| Segment {
            offset: u64_at(record, 0),
            vaddr: u64_at(record, 8),
            filesz: u64_at(record, 16),
            executable: u64_at(record, 24) != 0,
        };
        records.iter().take(SEGMENTS_MAX).map(segment).collect()
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let pages = self.pages.get().map_or(0, |pages| pages.firsts.len() * 4);
        self.index.capacity() + pages
    }
}

/// Returns the index of the last of ascending words that is at most `value`.
#[inline]
pub fn last_at_or_before(words: &[[u8; 4]], value: u32) -> Option<usize> {
    behind(words, value).checked_sub(1)
}

#[inline]
fn behind(words: &[[u8; 4]], value: u32) -> usize {
    words.partition_point(|word| u32::from_le_bytes(*word) <= value)
}

/// Divides the addresses into about as many pages as there are leaves: for each page the first leaf
/// that starts in it.
#[derive(Debug, Default)]
struct Pages {
    shift: u32,
    firsts: Box<[u32]>,
}

/// Number of leaves below which searching all of them is as fast.
const PAGED_MIN: usize = 32;

/// Number of look-ups after which pages are made. A caller that looks up the frames of one crash
/// should not wait for them, as they cost as much as some hundred look-ups save.
const SEARCHES_MAX: u32 = 256;

impl Pages {
    fn of(starts: &[[u8; 4]]) -> Pages {
        let start = |index: usize| starts.get(index).map(|start| u32::from_le_bytes(*start));
        let Some(last) = starts.len().checked_sub(1).and_then(start) else {
            return Pages::default();
        };
        if starts.len() < PAGED_MIN {
            return Pages::default();
        }
        let shift = (u64::from(last) / starts.len() as u64).max(1).ilog2();
        let mut index = 0;
        let firsts = (0..=(u64::from(last) >> shift) + 1).map(|page| {
            while start(index).is_some_and(|start| u64::from(start) < page << shift) {
                index += 1;
            }
            index as u32
        });
        Pages {
            shift,
            firsts: firsts.collect(),
        }
    }

    /// Returns which of `count` leaves start in the page of an address.
    #[inline]
    fn near(&self, rel: u32, count: usize) -> Within {
        let page = (rel >> self.shift) as usize;
        match self.firsts.get(page..).unwrap_or_default() {
            [first, behind, ..] => *first as usize..*behind as usize,
            // After the last start; or there are no pages.
            _ if self.firsts.is_empty() => 0..count,
            _ => count..count,
        }
    }
}

const _: () = assert!(PARTS_AT + PARTS * 16 == RANGES_AT);
const _: () = assert!(MAGIC_AT + MAGIC.len() == TRAILER_BYTES);
const _: () = assert!(BLOCK_BYTES.is_multiple_of(SYMBOL_BYTES));
const _: () = assert!(BLOCK_BYTES.is_multiple_of(FILE_BYTES));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// With any page division the same leaf is found as by a search of all.
        #[test]
        fn pages_lose_no_leaf(
            starts in proptest::collection::btree_set(0u32..200_000, 0..300),
            high in any::<bool>(),
            asked in proptest::collection::vec(0u32..210_000, 50),
        ) {
            let base = if high { u32::MAX - 250_000 } else { 0 };
            let starts: Vec<[u8; 4]> = starts.iter().map(|s| (base + s).to_le_bytes()).collect();
            let pages = Pages::of(&starts);
            for rel in asked.iter().map(|rel| base + rel).chain([0, u32::MAX]) {
                let near = pages.near(rel, starts.len());
                let found = near.start + behind(&starts[near], rel);
                prop_assert_eq!(found, behind(&starts, rel));
            }
        }

        /// The number of pages is similar to that of the starts, whatever these are.
        #[test]
        fn there_are_not_many_pages(starts in proptest::collection::vec(any::<u32>(), 0..300)) {
            let starts: Vec<[u8; 4]> = starts.iter().map(|s| s.to_le_bytes()).collect();
            prop_assert!(Pages::of(&starts).firsts.len() <= 2 * starts.len() + 2);
        }
    }
}
