//! The table of one file: its page blocks as `probe_ebpf::table` lays them out,
//! but with rule numbers of its own, so that it can wait in a cache; and how it
//! is loaded into the pool.

use super::dictionary::Dictionary;
use super::encode::{Packed, encode};
use super::no_table::NoTable;
use super::pool::{Pool, Run};
use probe_ebpf::table::{BLOCK_SHIFT, BLOCKS, NO_TABLE, PAGE_ROWS_MAX, PAGE_SHIFT, row};
use std::collections::HashMap;
use symbolize::Segments;
use symbolize::unwind::{Row, UnwindRule};

/// 64 MiB: ten times the largest table that we know of.
pub const TABLE_WORDS_MAX: usize = 16 << 20;

/// The table of a file, not loaded yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTable {
    /// Those with code: which file offset is at which link address.
    pub segments: Segments,
    pub first_page: u32,
    /// How many rows each page has; 0 for a page of holes only.
    pub page_rows: Vec<u32>,
    /// The page blocks of the pages that have rows, one after the other.
    pub words: Vec<u32>,
    /// The rules that the rows number.
    pub rules: Vec<Packed>,
}

/// Where a table lies in the pool, as a mapping tells it to the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableHandle {
    /// Number of the first word of its page index.
    pub table: u32,
    /// The first page that the index has.
    pub first_page: u32,
    /// How many pages it has.
    pub pages: u32,
}

impl TableHandle {
    /// Where a file has no table.
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
    pub runs: Vec<Run>,
    pub rows: usize,
}

impl FileTable {
    /// Packs the rows of a file; `rules` are what they number. The last row
    /// ends the code: it is a hole.
    pub fn build(rows: &[Row], rules: &[UnwindRule], segments: &Segments) -> Result<Self, NoTable> {
        if !rows.is_sorted_by_key(|row| row.start) {
            return Err(NoTable::Damaged);
        }
        let (rules, numbers) = number_rules(rules);
        // A segment without code may share a page of the file with one that
        // has some, and lie elsewhere.
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

    /// Puts the table of a user's file into the pool; `None` if there is no room.
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

    /// Rows of all pages.
    pub fn rows(&self) -> usize {
        self.page_rows.iter().map(|rows| *rows as usize).sum()
    }

    /// Bytes of the table when it is loaded.
    pub fn bytes(&self) -> usize {
        (self.words.len() + self.page_rows.len()) * 4
    }

    /// Whether every number in it is one that can be. What was built is sound;
    /// what comes from a disk is checked.
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

    /// The block of each page that has one, by the rows of the page.
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

/// The packed rules without repetition, and for each rule its number among
/// them. What has no number left is not supported.
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

/// The rows of one page; the first one is for its first address. `in_force` is
/// the rule that holds at its begin, and then at its end.
fn page_rows(page: &[Row], numbers: &[u16], in_force: &mut u16, rows: &mut Vec<u32>) -> Option<()> {
    rows.clear();
    rows.push(row(0, *in_force));
    for Row { start, rule } in page {
        *in_force = *numbers.get(usize::from(rule.0))?;
        // Of several rows for one address the last one holds.
        if rows.last().is_some_and(|last| last >> 16 == start & 0xffff) {
            rows.pop();
        }
        if rows.last().is_none_or(|last| rule_of(*last) != *in_force) {
            rows.push(row(*start, *in_force));
        }
    }
    Some(())
}

/// For each KiB of the page the range of its rows.
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

/// Everything that a search relies on; whether the rows are the right ones is
/// for a checksum to say.
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
