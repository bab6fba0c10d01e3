//! The table of one file: its page blocks in the layout of `probe_ebpf::table`, but with rule
//! numbers of its own, so that it can be stored in a cache; and loading it into the pool.

use super::dictionary::Dictionary;
use super::encode::{Packed, encode};
use super::no_table::NoTable;
use super::pool::{Pool, Run, chunk_of};
use probe_ebpf::table::{BLOCK_SHIFT, BLOCKS, NO_TABLE, PAGE_ROWS_MAX, PAGE_SHIFT, row};
use std::collections::HashMap;
use symbolize::Segments;
use symbolize::unwind::{Row, UnwindRule};

/// Maximum length of a table: 64 MiB, ten times the largest known table.
pub const TABLE_WORDS_MAX: usize = 16 << 20;

/// The table of a file that is not loaded yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTable {
    /// The segments with code, which map file offsets to link addresses.
    pub segments: Segments,
    /// Number of the first page of link addresses.
    pub first_page: u32,
    /// Number of rows of each page; 0 for a page of holes only.
    pub page_rows: Vec<u32>,
    /// The page blocks of the pages that have rows, in sequence.
    pub words: Vec<u32>,
    /// The rules to which the rows refer by number.
    pub rules: Vec<Packed>,
}

/// The position of a table in the pool, as stored in mappings for the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableHandle {
    /// Number of the first word of its page index.
    pub table: u32,
    /// The first page in the index.
    pub first_page: u32,
    /// Number of pages in the index.
    pub pages: u32,
}

impl TableHandle {
    /// The handle of a file without a table.
    pub const NONE: TableHandle = TableHandle {
        table: NO_TABLE,
        first_page: 0,
        pages: 0,
    };
}

/// A table in the pool.
#[derive(Debug)]
pub struct Loaded {
    pub handle: TableHandle,
    /// The parts of the pool that it occupies.
    pub runs: Vec<Run>,
    /// Number of rows of all pages.
    pub rows: usize,
}

impl Loaded {
    /// Moves what lies in a chunk to others, and adds the places that are left to `left`. `None` if
    /// something had to stay, because no other chunk has room for it.
    ///
    /// A page that was moved is referred to in place of the old one by one word of the page index,
    /// so that a walk finds the one or the other. If the index itself is moved, the handle changes,
    /// and the lists of mappings have to be written again.
    pub fn move_out_of(
        &mut self,
        chunk: usize,
        pool: &mut Pool,
        left: &mut Vec<Run>,
    ) -> Option<()> {
        if self.runs.iter().all(|run| chunk_of(*run) != chunk) {
            return Some(());
        }
        let (index, pages) = self.runs.split_last_mut()?;
        let mut places = pool.read(*index)?.into_iter();
        let mut at = 0;
        for page in pages {
            // Pages without rows have no run.
            at += places.position(|place| place == page.first)? as u32 + 1;
            if chunk_of(*page) == chunk {
                let copy = pool.copy_out(*page)?;
                if pool
                    .write(*index, at - 1, std::iter::once(copy.first))
                    .is_none()
                {
                    pool.discard(vec![copy]);
                    return None;
                }
                left.push(std::mem::replace(page, copy));
            }
        }
        if chunk_of(*index) == chunk {
            let copy = pool.copy_out(*index)?;
            left.push(std::mem::replace(index, copy));
            self.handle.table = copy.first;
        }
        Some(())
    }
}

impl FileTable {
    /// Packs the rows of a file, whose rule numbers refer to `rules`. The last row ends the code:
    /// it is a hole.
    pub fn build(rows: &[Row], rules: &[UnwindRule], segments: &Segments) -> Result<Self, NoTable> {
        if !rows.is_sorted_by_key(|row| row.start) {
            return Err(NoTable::Damaged);
        }
        let (rules, numbers) = number_rules(rules);
        // A segment without code may share a page of the file with one that has code, and have
        // another address.
        let code = segments.iter().filter(|segment| segment.executable);
        let segments = Segments::new(code.copied().collect());
        let mut built = Self {
            segments,
            rules,
            ..Self::default()
        };
        let mut in_force = HOLE;
        let mut rest = rows;
        let mut next_page = rest.first().map_or(0, |row| row.start >> PAGE_SHIFT);
        built.first_page = next_page;
        let mut packed = Vec::new();
        while !rest.is_empty() {
            let here = rest.partition_point(|row| row.start >> PAGE_SHIFT == next_page);
            let (page, others) = rest.split_at(here);
            page_rows(page, &numbers, &mut in_force, &mut packed).ok_or(NoTable::Damaged)?;
            built.push_page(&packed)?;
            rest = others;
            next_page += 1;
        }
        while built.page_rows.last() == Some(&0) {
            built.page_rows.pop();
        }
        debug_assert!(built.is_sound());
        if built.words.is_empty() {
            return Err(NoTable::NoUnwindInfo);
        }
        Ok(built)
    }

    /// Loads the table of a user's file into the pool; `None` if there is no room.
    pub fn load(&self, pool: &mut Pool, dictionary: &mut Dictionary, user: u32) -> Option<Loaded> {
        let numbers: Vec<u16> = self
            .rules
            .iter()
            .map(|rule| dictionary.number_of(*rule, user))
            .collect();
        let mut runs = Vec::with_capacity(self.page_rows.len() + 1);
        let loaded = self.load_pages(pool, &numbers, &mut runs);
        if loaded.is_none() {
            pool.discard(runs);
            return None;
        }
        Some(Loaded {
            handle: TableHandle {
                table: runs.last()?.first,
                first_page: self.first_page,
                pages: self.page_rows.len() as u32,
            },
            rows: self.rows(),
            runs,
        })
    }

    /// Number of rows of all pages.
    pub fn rows(&self) -> usize {
        self.page_rows.iter().map(|rows| *rows as usize).sum()
    }

    /// Size in bytes of the table when it is loaded.
    pub fn bytes(&self) -> usize {
        (self.words.len() + self.page_rows.len()) * 4
    }

    /// Whether all numbers in it are valid. A newly built table is; one from a disk has to be
    /// checked.
    pub fn is_sound(&self) -> bool {
        let pages = self.page_rows.len();
        if self.rules.len() > 1 << 16
            || self.first_page as usize + pages > 1 << 16
            || self.words.len() > TABLE_WORDS_MAX
        {
            return false;
        }
        let mut rest = self.words.as_slice();
        for rows in self.page_rows.iter().filter(|rows| **rows > 0) {
            let words = BLOCKS as usize + *rows as usize;
            let Some((block, others)) = rest.split_at_checked(words) else {
                return false;
            };
            if *rows as usize > PAGE_ROWS_MAX || !is_sound_block(block, self.rules.len()) {
                return false;
            }
            rest = others;
        }
        rest.is_empty()
    }

    /// Loads the block of each page that has one; the block is chosen by the rows of the page.
    fn load_pages(&self, pool: &mut Pool, numbers: &[u16], runs: &mut Vec<Run>) -> Option<()> {
        let mut index = Vec::with_capacity(self.page_rows.len());
        let mut rest = self.words.as_slice();
        for rows in &self.page_rows {
            if *rows == 0 {
                index.push(0);
                continue;
            }
            let (block, others) = rest.split_at_checked((BLOCKS + rows) as usize)?;
            rest = others;
            let run = pool.allocate(BLOCKS + rows)?;
            runs.push(run);
            let (ranges, rows) = block.split_at(BLOCKS as usize);
            let translate = |word: &u32| row(word >> 16, numbers[(word & 0xffff) as usize]);
            pool.write(run, 0, ranges.iter().copied())?;
            pool.write(run, BLOCKS, rows.iter().map(translate))?;
            index.push(run.first);
        }
        let run = pool.allocate(index.len() as u32)?;
        runs.push(run);
        pool.write(run, 0, index.into_iter())
    }

    fn push_page(&mut self, rows: &[u32]) -> Result<(), NoTable> {
        if rows.iter().all(|row| rule_of(*row) == HOLE) {
            self.page_rows.push(0);
            return Ok(());
        }
        let words = self.words.len() + BLOCKS as usize + rows.len();
        if rows.len() > PAGE_ROWS_MAX || words > TABLE_WORDS_MAX {
            return Err(NoTable::TooLarge);
        }
        self.page_rows.push(rows.len() as u32);
        self.words.extend(block_ranges(rows));
        self.words.extend_from_slice(rows);
        Ok(())
    }
}

/// The file's own number of the rule for holes.
const HOLE: u16 = 0;

fn rule_of(row: u32) -> u16 {
    row as u16
}

/// Returns the distinct packed rules, and for each rule its number among them. A rule for which no
/// number is left is not supported.
fn number_rules(all: &[UnwindRule]) -> (Vec<Packed>, Vec<u16>) {
    let mut rules = vec![Packed::HOLE, Packed::UNSUPPORTED];
    let mut known: HashMap<Packed, u16> = HashMap::from([(Packed::HOLE, 0), (rules[1], 1)]);
    let numbers = all
        .iter()
        .map(|rule| {
            let packed = encode(rule);
            let next = u16::try_from(rules.len());
            *known.entry(packed).or_insert_with(|| match next {
                Ok(number) => {
                    rules.push(packed);
                    number
                }
                Err(_) => 1,
            })
        })
        .collect();
    (rules, numbers)
}

/// Appends the rows of one page; the first one is for its first address. `in_force` is the rule in
/// force at its beginning, and afterwards at its end.
fn page_rows(page: &[Row], numbers: &[u16], in_force: &mut u16, rows: &mut Vec<u32>) -> Option<()> {
    rows.clear();
    rows.push(row(0, *in_force));
    for Row { start, rule } in page {
        *in_force = *numbers.get(usize::from(rule.0))?;
        // Of several rows for one address the last one counts.
        if rows.last().is_some_and(|last| last >> 16 == start & 0xffff) {
            rows.pop();
        }
        if rows.last().is_none_or(|last| rule_of(*last) != *in_force) {
            rows.push(row(*start, *in_force));
        }
    }
    Some(())
}

/// Returns for each KiB of the page the range of its rows.
fn block_ranges(rows: &[u32]) -> impl Iterator<Item = u32> + '_ {
    let mut end = 0;
    (0..BLOCKS).map(move |block| {
        let last_address = ((block + 1) << BLOCK_SHIFT) - 1;
        let starts_here = |row: u32| row >> 16 == block << BLOCK_SHIFT;
        let first = match rows.get(end) {
            Some(row) if starts_here(*row) => end,
            _ => end - 1,
        };
        end += rows[end..]
            .iter()
            .take_while(|row| **row >> 16 <= last_address)
            .count();
        (first as u32) << 16 | end as u32
    })
}

/// Whether a block fulfils everything that a search relies on; whether its rows are the right ones
/// is for the checksum to check.
fn is_sound_block(block: &[u32], rules: usize) -> bool {
    let (ranges, rows) = block.split_at(BLOCKS as usize);
    let starts_with_0 = rows.first().is_some_and(|row| row >> 16 == 0);
    let is_in_order = rows.is_sorted_by(|a, b| a >> 16 < b >> 16);
    let last_rule = rows.iter().map(|row| row & 0xffff).max().unwrap_or(0);
    let is_range = |range: &u32| {
        let (first, end) = (range >> 16, range & 0xffff);
        first < end && end as usize <= rows.len()
    };
    starts_with_0 && is_in_order && (last_rule as usize) < rules && ranges.iter().all(is_range)
}

#[cfg(test)]
mod tests;
