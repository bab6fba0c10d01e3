//! The ranges of all units as the bytes of one table.

use super::blocks::BLOCK_BYTES;
use super::format::{self, HEADER_BYTES, NONE, Part};
use super::intern::Texts;
use super::unit::{Place, UnitRanges};
use crate::OpenError;
use crate::address::Segments;

/// Ranges of a page: with more a look-up searches longer, with fewer the pages
/// take more room than the ranges.
const RANGES_PER_PAGE: u64 = 8;

/// What a table holds beside the ranges of units.
#[derive(Debug, Default)]
pub struct Extras<'x> {
    /// What identifies the file.
    pub key: &'x [u8],
    /// What identifies the file that the debug information is from.
    pub source: &'x [u8],
    pub segments: Option<&'x Segments>,
    /// By start, without overlaps.
    pub symbols: Vec<SymbolEntry<'x>>,
    /// Whether to keep columns, by which ranges are cut finer.
    pub columns: bool,
    /// Not to be written to disk: texts need not keep to blocks.
    pub in_memory: bool,
}

/// A stretch of a function of the symbol table.
#[derive(Debug, Clone, Copy)]
pub struct SymbolEntry<'x> {
    pub start: u64,
    /// How far `start` is from the function's.
    pub within: u32,
    pub size: u32,
    pub name: &'x [u8],
}

/// A stretch of addresses of one unit.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    end: u32,
    place: u32,
}

/// Writes a table. Of units that claim the same code the first one counts.
pub fn write(units: &[UnitRanges], extras: &Extras<'_>) -> Result<Vec<u8>, OpenError> {
    let base = base(units, extras);
    let stretches = stretches(units, base)?;
    let mut out = Output::new();
    let ranges = joined(&stretches);
    drop(stretches);
    let span = ranges.last().map_or(0, |last| last.0);
    let shift = page_shift(span, ranges.len() as u64);
    out.part(Part::Pages, &pages(&ranges, shift));
    out.words(Part::Starts, ranges.iter().map(|range| range.0));
    out.words(Part::PlaceOf, ranges.iter().map(|range| range.1));
    drop(ranges);

    let mut texts = Texts::default();
    let mut files = Files::default();
    let count = units.iter().map(|unit| unit.places.len()).sum::<usize>();
    let mut places = Vec::with_capacity(count * 4);
    let mut columns = Vec::with_capacity(if extras.columns { count } else { 0 });
    let mut before = 0;
    for unit in units {
        let file_ids = files.add_all(unit, &mut texts);
        let text_ids: Vec<u32> = function_texts(unit, &mut texts);
        for place in &unit.places {
            let of = |ids: &[u32], id: u32| ids.get(id as usize).copied().unwrap_or(NONE);
            let parent = match place.parent {
                NONE => NONE,
                parent => parent + before,
            };
            places.extend([
                of(&text_ids, place.function),
                of(&file_ids, place.file),
                place.line,
                parent,
            ]);
            columns.extend(extras.columns.then_some(place.column));
        }
        before += unit.places.len() as u32;
    }
    out.part(Part::Places, &places);
    drop(places);
    out.part(Part::Columns, &columns);
    out.words(Part::Files, files.pairs.iter().flat_map(|(d, n)| [*d, *n]));
    let symbols: Vec<u32> = symbols(extras, base, &mut texts);
    let (key, source) = (texts.add(extras.key), texts.add(extras.source));
    out.texts(&texts.bytes, extras.in_memory);
    out.part(Part::Symbols, &symbols);
    out.part(Part::Segments, &segments(extras));
    Ok(out.finish(shift, base, key, source))
}

/// The lowest address that is told of.
fn base(units: &[UnitRanges], extras: &Extras<'_>) -> u64 {
    let code = units.iter().filter_map(|unit| unit.ranges.first());
    let code = code.map(|range| range.start);
    let symbols = extras.symbols.first().map(|symbol| symbol.start);
    code.chain(symbols).min().unwrap_or(0)
}

/// Of all units, by start; places are numbered through.
fn stretches(units: &[UnitRanges], base: u64) -> Result<Vec<Stretch>, OpenError> {
    let count = units.iter().map(|unit| unit.ranges.len()).sum();
    let mut all = Vec::with_capacity(count);
    let mut before: u32 = 0;
    for unit in units {
        for pair in unit.ranges.windows(2) {
            let [range, next] = pair else { continue };
            let (start, end) = (range.start - base, next.start - base);
            // Beyond 4 GiB from the start of its code no file has any.
            let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
                continue;
            };
            if range.place != NONE {
                let place = range.place + before;
                all.push(Stretch { start, end, place });
            }
        }
        before = u32::try_from(unit.places.len())
            .ok()
            .and_then(|places| before.checked_add(places))
            .filter(|&before| before < NONE)
            .ok_or(OpenError::Refused("too much debug information"))?;
    }
    // Units mostly come in the order of their code, which this sort likes.
    all.sort_by_key(|stretch| stretch.start);
    Ok(all)
}

/// Ranges without overlaps: where each starts, and its place.
fn joined(stretches: &[Stretch]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(stretches.len() + 1);
    let mut end = 0;
    let mut push = |start: u32, place: u32| {
        ranges.pop_if(|last| last.0 == start);
        if ranges.last().map_or(NONE, |last| last.1) != place {
            ranges.push((start, place));
        }
    };
    for stretch in stretches.iter().filter(|s| s.start < s.end) {
        let start = stretch.start.max(end);
        if start >= stretch.end {
            continue;
        }
        if start > end {
            push(end, NONE);
        }
        push(start, stretch.place);
        end = stretch.end;
    }
    push(end, NONE);
    ranges
}

fn page_shift(span: u32, ranges: u64) -> u32 {
    let per_page = u64::from(span) * RANGES_PER_PAGE / ranges.max(1);
    per_page.max(64).ilog2().min(31)
}

/// For each page, and one more: the last range that starts at or before it.
fn pages(ranges: &[(u32, u32)], shift: u32) -> Vec<u32> {
    let Some(last) = ranges.last() else {
        return Vec::new();
    };
    let count = u64::from(last.0 >> shift) + 2;
    let mut pages = Vec::with_capacity(count as usize);
    let mut index = 0;
    for page in 0..count {
        let start = page << shift;
        while index + 1 < ranges.len() && u64::from(ranges[index + 1].0) <= start {
            index += 1;
        }
        pages.push(index as u32);
    }
    pages
}

/// Files by the texts of their directory and name.
#[derive(Default)]
struct Files {
    pairs: Vec<(u32, u32)>,
    ids: std::collections::HashMap<(u32, u32), u32, crate::hash::FastState>,
}

impl Files {
    fn add_all<'t>(&mut self, unit: &'t UnitRanges, texts: &mut Texts<'t>) -> Vec<u32> {
        let mut add = |(directory, name): &(u32, u32)| {
            let directory = texts.add(unit.text(*directory));
            let pair = (directory, texts.add(unit.text(*name)));
            let next = self.pairs.len() as u32;
            let id = *self.ids.entry(pair).or_insert(next);
            if id == next {
                self.pairs.push(pair);
            }
            id
        };
        unit.files.iter().map(&mut add).collect()
    }
}

/// The texts that are names of functions; those of files are not repeated.
fn function_texts<'t>(unit: &'t UnitRanges, texts: &mut Texts<'t>) -> Vec<u32> {
    let mut ids = vec![NONE; unit.texts.len()];
    let functions = unit.places.iter().map(|place: &Place| place.function);
    for function in functions {
        if let Some(id) = ids.get_mut(function as usize)
            && *id == NONE
        {
            *id = texts.add(unit.text(function));
        }
    }
    ids
}

fn symbols<'x>(extras: &Extras<'x>, base: u64, texts: &mut Texts<'x>) -> Vec<u32> {
    let mut words = Vec::with_capacity(extras.symbols.len() * 4);
    for symbol in &extras.symbols {
        let Ok(start) = u32::try_from(symbol.start - base) else {
            break;
        };
        let name = &symbol.name[..symbol.name.len().min(format::TEXT_BYTES_MAX)];
        words.extend([start, symbol.size, texts.add(name), symbol.within]);
    }
    words
}

fn segments(extras: &Extras<'_>) -> Vec<u32> {
    let split = |long: u64| [long as u32, (long >> 32) as u32];
    let segments = extras.segments.into_iter().flat_map(|all| all.iter());
    let longs = segments.flat_map(|s| [s.offset, s.vaddr, s.filesz, s.executable.into()]);
    longs.flat_map(split).collect()
}

struct Output {
    bytes: Vec<u8>,
}

impl Output {
    fn new() -> Output {
        Output {
            bytes: vec![0; HEADER_BYTES],
        }
    }

    fn part(&mut self, part: Part, words: &[u32]) {
        self.words(part, words.iter().copied());
    }

    fn words(&mut self, part: Part, words: impl Iterator<Item = u32>) {
        let start = self.begin();
        // Some at once, so that the bytes are not asked for room at each word.
        let mut some = [0; 1024];
        let mut words = words.peekable();
        while words.peek().is_some() {
            let (places, _) = some.as_chunks_mut::<4>();
            let mut count = 0;
            for (place, word) in places.iter_mut().zip(&mut words) {
                *place = word.to_le_bytes();
                count += 1;
            }
            self.bytes.extend_from_slice(&some[..count * 4]);
        }
        self.end(part, start);
    }

    /// Texts have been laid out for a part that starts with a block.
    fn texts(&mut self, bytes: &[u8], in_memory: bool) {
        if !in_memory {
            let start = self.bytes.len().next_multiple_of(BLOCK_BYTES);
            self.bytes.resize(start, 0);
        }
        let start = self.begin();
        self.bytes.extend_from_slice(bytes);
        self.end(Part::Text, start);
    }

    fn begin(&mut self) -> usize {
        let start = self.bytes.len().next_multiple_of(format::ALIGNMENT);
        self.bytes.resize(start, 0);
        start
    }

    fn end(&mut self, part: Part, start: usize) {
        let words = (self.bytes.len() - start) as u64 / 4;
        let at = format::PARTS_AT + part as usize * 16;
        self.put(at, start as u64);
        self.put(at + 8, words / part.words());
    }

    fn put(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn finish(mut self, shift: u32, base: u64, key: u32, source: u32) -> Vec<u8> {
        self.bytes[..8].copy_from_slice(&format::MAGIC);
        self.put(8, u64::from(shift) << 32 | u64::from(format::VERSION));
        self.put(16, base);
        self.put(24, u64::from(source) << 32 | u64::from(key));
        let end = self.bytes.len();
        self.put(format::SUMMED_AT, end as u64);
        let header = |bytes: &[u8]| crc32fast::hash(&bytes[..HEADER_BYTES]);
        // The first block is summed while the sums of the header still are 0.
        let sums = self.sums_behind(end);
        let of_sums = crc32fast::hash(&sums);
        self.bytes[format::SUM_AT + 4..format::SUM_AT + 8].copy_from_slice(&of_sums.to_le_bytes());
        let sum = header(&self.bytes);
        self.bytes[format::SUM_AT..format::SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        self.bytes.extend(sums);
        self.bytes
    }

    fn sums_behind(&self, end: usize) -> Vec<u8> {
        let blocks = self.bytes[..end].chunks(BLOCK_BYTES);
        blocks
            .flat_map(|block| crc32fast::hash(block).to_le_bytes())
            .collect()
    }
}
