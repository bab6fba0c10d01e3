//! Writes all units as one table. Blocks are written as they are completed, so a table on disk is
//! never in memory as a whole.

mod joined;
mod places;

use crate::crc::{Crc, crc32};
use std::fmt::Debug;
use std::io::{self, Write};

use super::blocks::BLOCK_BYTES;
use super::format::{self, TRAILER_BYTES, TablePart};
use super::intern::Texts;
use super::pool::KnownTexts;
use super::unit::UnitRanges;
use crate::OpenError;
use crate::address::Segments;

use places::{AllTexts, Files};

/// The contents of a table in addition to the ranges of units.
#[derive(Debug, Default)]
pub struct Extras<'x> {
    /// Identity of the file.
    pub key: &'x [u8],
    /// Identity of the file with the debug information.
    pub source: &'x [u8],
    /// The parts of the file that processes map.
    pub segments: Option<&'x Segments>,
    /// The functions of its symbol table.
    pub symbols: Option<&'x dyn Symbols>,
    /// Whether to store columns, which need finer ranges.
    pub columns: bool,
    /// Whether the table stays in memory: then texts may cross blocks.
    pub in_memory: bool,
}

/// The functions of a symbol table. They are read after everything else was written: their names
/// take as much memory as was freed by then.
pub trait Symbols: Debug + Sync {
    /// An address before which there is no function.
    fn first(&self) -> Option<u64>;

    /// All functions by start, without overlaps.
    fn entries(&self) -> Vec<SymbolEntry<'_>>;
}

/// A part of a function of the symbol table.
#[derive(Debug, Clone, Copy)]
pub struct SymbolEntry<'x> {
    /// Link address where it begins.
    pub start: u64,
    /// Distance of `start` from the function's start.
    pub within: u32,
    /// Number of bytes.
    pub size: u32,
    /// Name of the function, as the compiler wrote it.
    pub name: &'x [u8],
}

/// Number of bytes written at once.
const PIECE_BYTES: usize = 16 * BLOCK_BYTES;

/// Writes a table to memory. If units claim the same code, the first one gets it.
pub fn write(
    units: Vec<UnitRanges>,
    known: &KnownTexts,
    extras: &Extras<'_>,
) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    write_to(units, known, extras, &mut bytes)?;
    // The buffer grew by doubling, and is kept.
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Writes a table to `sink`.
pub fn write_to(
    mut units: Vec<UnitRanges>,
    known: &KnownTexts,
    extras: &Extras<'_>,
    sink: &mut dyn Write,
) -> Result<(), OpenError> {
    let base = base(&units, extras);
    let mut out = Output::new(extras.in_memory, sink);
    let mut texts = Texts::new(extras.in_memory, known.texts());
    let mut files = Files::default();
    let places = AllTexts::new(known, &mut files, &mut texts);
    let ranges = joined::join(&mut units, base, places, |start, leaf| {
        out.leaf(start, leaf)
    });
    out.end_leaves(ranges);
    let symbols = extras.symbols.map(Symbols::entries).unwrap_or_default();
    out.symbols(&symbols, base, &mut texts);
    let pairs = files
        .pairs
        .iter()
        .flat_map(|(directory, name)| [directory.to_le_bytes(), name.to_le_bytes()]);
    let pairs: Vec<[u8; 4]> = pairs.collect();
    out.part(TablePart::Files, pairs.as_flattened());
    out.part(TablePart::Text, &texts.bytes);
    drop((texts, files));
    out.finish(base, extras)
        .map_err(|source| OpenError::Write { source })
}

/// The lowest address in the table.
fn base(units: &[UnitRanges], extras: &Extras<'_>) -> u64 {
    let code = units
        .iter()
        .map(|unit| &unit.leaves)
        .filter(|leaves| leaves.count() > 0)
        .map(|leaves| leaves.first);
    let symbols = extras.symbols.and_then(Symbols::first);
    code.chain(symbols).min().unwrap_or(0)
}

/// A table that is being written.
struct Output<'s> {
    sink: &'s mut dyn Write,
    /// Bytes that were not written yet: they begin at a block; `before` bytes precede them.
    bytes: Vec<u8>,
    before: usize,
    /// Checksums of the written blocks.
    sums: Vec<u32>,
    failed: Option<io::Error>,
    in_memory: bool,
    trailer: [u8; TRAILER_BYTES],
    /// The beginning of the index: starts of leaves, and of blocks of symbols.
    starts: Vec<u32>,
}

impl<'s> Output<'s> {
    fn new(in_memory: bool, sink: &'s mut dyn Write) -> Output<'s> {
        Output {
            sink,
            bytes: Vec::new(),
            before: 0,
            sums: Vec::new(),
            failed: None,
            in_memory,
            trailer: [0; TRAILER_BYTES],
            starts: Vec::new(),
        }
    }

    fn leaf(&mut self, start: u32, leaf: &[u8]) {
        self.starts.push(start);
        self.pad();
        self.put_out(PIECE_BYTES);
        self.bytes.extend_from_slice(leaf);
    }

    fn end_leaves(&mut self, ranges: u64) {
        self.put(format::RANGES_AT, ranges);
        self.end(TablePart::Leaves, 0);
    }

    fn symbols<'x>(&mut self, symbols: &[SymbolEntry<'x>], base: u64, texts: &mut Texts<'x>) {
        let from = self.begin();
        for symbol in symbols {
            let start = symbol.start.checked_sub(base).map(u32::try_from);
            let Some(Ok(start)) = start else {
                break;
            };
            if (self.len() - from).is_multiple_of(BLOCK_BYTES) {
                self.put_out(PIECE_BYTES);
                self.starts.push(start);
            }
            let name = texts.add(format::cut(symbol.name));
            let words = [start, symbol.size, name, symbol.within].map(u32::to_le_bytes);
            self.bytes.extend_from_slice(words.as_flattened());
        }
        self.end(TablePart::Symbols, from);
    }

    fn part(&mut self, part: TablePart, bytes: &[u8]) {
        let from = self.begin();
        for piece in bytes.chunks(PIECE_BYTES) {
            self.bytes.extend_from_slice(piece);
            self.put_out(PIECE_BYTES);
        }
        self.end(part, from);
    }

    fn begin(&mut self) -> usize {
        if !self.in_memory {
            self.pad();
        }
        self.len()
    }

    fn end(&mut self, part: TablePart, from: usize) {
        let at = format::PARTS_AT + part as usize * 16;
        self.put(at, from as u64);
        self.put(at + 8, (self.len() - from) as u64);
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(BLOCK_BYTES);
        self.bytes.resize(padded, 0);
    }

    fn len(&self) -> usize {
        self.before + self.bytes.len()
    }

    /// Writes all complete blocks, if there are at least `bytes_min`.
    fn put_out(&mut self, bytes_min: usize) {
        let len = self.bytes.len() / BLOCK_BYTES * BLOCK_BYTES;
        if len >= bytes_min {
            self.put_out_first(len);
        }
    }

    fn put_out_first(&mut self, len: usize) {
        let bytes = &self.bytes[..len];
        if !self.in_memory {
            let sums = bytes.chunks(BLOCK_BYTES).map(crc32);
            self.sums.extend(sums);
        }
        if self.failed.is_none() {
            self.failed = self.sink.write_all(bytes).err();
        }
        self.before += len;
        self.bytes.drain(..len);
    }

    fn put(&mut self, at: usize, value: u64) {
        self.trailer[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn put_short(&mut self, at: usize, value: u32) {
        self.trailer[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Appends index and trailer.
    fn finish(mut self, base: u64, extras: &Extras<'_>) -> io::Result<()> {
        self.put_out_first(self.bytes.len());
        let words = self.starts.iter().chain(&self.sums);
        let mut index: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        let segments = extras
            .segments
            .into_iter()
            .flat_map(Segments::iter)
            .flat_map(|s| [s.offset, s.vaddr, s.filesz, s.executable.into()]);
        let before = index.len();
        index.extend(segments.flat_map(u64::to_le_bytes));
        let segments = (index.len() - before) / format::SEGMENT_BYTES;
        index.extend_from_slice(extras.key);
        index.extend_from_slice(extras.source);

        self.put(0, base);
        self.put_short(format::INDEX_BYTES_AT, index.len() as u32);
        let sums = self.sums.len();
        let counts = [sums, segments, extras.key.len(), extras.source.len()];
        for (number, count) in counts.into_iter().enumerate() {
            self.put_short(format::COUNTS_AT + number * 4, count as u32);
        }
        self.put_short(format::VERSION_AT, format::VERSION);
        self.trailer[format::MAGIC_AT..].copy_from_slice(&format::MAGIC);
        let mut sum = Crc::new();
        sum.update(&index);
        sum.update(&self.trailer);
        self.put_short(format::SUM_AT, sum.sum());
        index.extend_from_slice(&self.trailer);
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.sink.write_all(&index)
    }
}
