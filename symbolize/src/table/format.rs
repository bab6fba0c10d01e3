//! The layout of a table, little-endian throughout:
//!
//! ```text
//! 0    magic, version, page shift                  8 + 4 + 4
//! 16   base, key, source, reserved                 8 + 4 + 4 + 8
//! 40   parts: offset, count of records             10 × (8 + 8)
//! 200  length of everything before the sums        8
//! 208  sum of this header, and of the sums         4 + 4
//! 256  the parts, each at a multiple of 64
//! …    sums: CRC-32 of each block of 8 KiB
//! ```
//!
//! Every record's size divides a block's, and texts are placed so that none
//! crosses the end of a block: whatever is read lies in one block. Only a text
//! that is longer than a block goes on in the next ones, from the start of one.

use super::blocks::{BLOCK_BYTES, Blocks};
use crate::OpenError;
use crate::bytes::{u32_at, u64_at};

pub const MAGIC: [u8; 8] = *b"PROFSYM1";
/// Another one needs another directory of the cache.
pub const VERSION: u32 = 2;
pub const HEADER_BYTES: usize = 256;
pub const PARTS: usize = 10;
pub const PARTS_AT: usize = 40;
pub const SUMMED_AT: usize = 200;
pub const SUM_AT: usize = 208;
pub const ALIGNMENT: usize = 64;

/// No place, no text, no file.
pub const NONE: u32 = u32::MAX;

/// function, file, line, parent
pub const PLACE_WORDS: u64 = 4;
/// start, size, name, flags
pub const SYMBOL_WORDS: u64 = 4;
/// offset, vaddr, filesz, executable, of 64 bits each
pub const SEGMENT_WORDS: u64 = 8;

/// Longer texts are cut, as names of symbol tables are. Templates and closures
/// have names of some 10 KiB at times.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// The parts of a table, in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Part {
    /// By page: the last range that starts at or before it.
    Pages,
    /// By range: where it starts, minus the base.
    Starts,
    /// By range: its place.
    PlaceOf,
    Places,
    /// By place, or nothing at all.
    Columns,
    Files,
    Text,
    Symbols,
    Segments,
    Reserved,
}

impl Part {
    pub const ALL: [Part; PARTS] = [
        Part::Pages,
        Part::Starts,
        Part::PlaceOf,
        Part::Places,
        Part::Columns,
        Part::Files,
        Part::Text,
        Part::Symbols,
        Part::Segments,
        Part::Reserved,
    ];

    /// Words of a record; of texts, whose records differ, one.
    pub fn words(self) -> u64 {
        match self {
            Part::Places => PLACE_WORDS,
            Part::Symbols => SYMBOL_WORDS,
            Part::Segments => SEGMENT_WORDS,
            Part::Files => 2,
            _ => 1,
        }
    }
}

/// The header, checked: every part lies within the bytes.
#[derive(Debug)]
pub struct Directory {
    pub page_shift: u32,
    pub base: u64,
    pub key: u32,
    pub source: u32,
    parts: [(u64, u64); PARTS],
}

impl Directory {
    /// Reads the header, and the sums of a file's blocks.
    pub fn read(blocks: &mut Blocks) -> Result<Directory, OpenError> {
        let damaged = || OpenError::Damaged("symbol table of the cache");
        let header = blocks.header().ok_or_else(damaged)?;
        if header[..8] != MAGIC || u32_at(&header, 8) != VERSION {
            return Err(damaged());
        }
        let mut summed = header;
        summed[SUM_AT..SUM_AT + 4].fill(0);
        if crc32fast::hash(&summed) != u32_at(&header, SUM_AT) {
            return Err(damaged());
        }
        let end = u64_at(&header, SUMMED_AT);
        blocks
            .read_sums(end, u32_at(&header, SUM_AT + 4))
            .ok_or_else(damaged)?;
        let mut parts = [(0, 0); PARTS];
        for (index, part) in Part::ALL.into_iter().enumerate() {
            let at = PARTS_AT + index * 16;
            let (offset, count) = (u64_at(&header, at), u64_at(&header, at + 8));
            let len = count.checked_mul(part.words() * 4);
            let behind = len.and_then(|len| offset.checked_add(len));
            let fits = behind.is_some_and(|behind| behind <= end);
            if !fits || !offset.is_multiple_of(ALIGNMENT as u64) {
                return Err(damaged());
            }
            parts[index] = (offset, count);
        }
        Ok(Directory {
            page_shift: u32_at(&header, 12).min(31),
            base: u64_at(&header, 16),
            key: u32_at(&header, 24),
            source: u32_at(&header, 28),
            parts,
        })
    }

    /// How many records the part has.
    pub fn count(&self, part: Part) -> u64 {
        self.parts[part as usize].1
    }

    /// Where in the file a word of a part is.
    #[inline]
    pub fn word_at(&self, part: Part, index: u64) -> Option<u64> {
        let (offset, count) = self.parts[part as usize];
        (index < count * part.words()).then(|| offset + index * 4)
    }

    pub fn text_at(&self, offset: u32) -> Option<u64> {
        self.word_at(Part::Text, u64::from(offset))
    }
}

const _: () = assert!(BLOCK_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(PARTS_AT + PARTS * 16 == SUMMED_AT);
