//! Reads tables and lists where they are written, so that the walk of BPF can be done in user space
//! as well.

use super::dictionary::{EXTENDED_WORDS, extended_from_words};
use super::maps::{WINDOW_SHIFT, WINDOWS, Window};
use super::pool::ChunkSet;
use crate::shared::Shared;
use probe_ebpf::rule::{Extended, Rule, special};
use probe_ebpf::table::{Mapping, MappingList, NO_TABLE, PAGE_SHIFT, Words, find_rule};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// A view of all tables. Like a sample it must not be kept for longer than
/// [`REST_NS`](super::resting::REST_NS), as places are used again.
#[derive(Debug, Clone)]
pub struct Reader {
    chunks: ChunkSet,
    /// The windows that were opened, by number; `None` for those that cannot be.
    windows: Box<[OnceLock<Option<Window>>]>,
    rules: Arc<Shared>,
    extended: Arc<Shared>,
    mappings: Arc<Shared>,
}

impl Words for Reader {
    fn word(&self, number: u32) -> u32 {
        let index = (number >> WINDOW_SHIFT) as usize;
        let Some(window) = self.windows.get(index) else {
            return 0;
        };
        let chunk = &self.chunks[index / WINDOWS];
        let open = || chunk.as_ref()?.window(index % WINDOWS).ok();
        match window.get_or_init(open) {
            Some(window) => window.word(number as usize).load(Ordering::Acquire),
            None => 0,
        }
    }
}

impl Reader {
    pub(super) fn new(
        chunks: ChunkSet,
        rules: Arc<Shared>,
        extended: Arc<Shared>,
        mappings: Arc<Shared>,
    ) -> Self {
        Self {
            windows: (0..chunks.len() * WINDOWS)
                .map(|_| OnceLock::new())
                .collect(),
            chunks,
            rules,
            extended,
            mappings,
        }
    }

    /// Whether it reads these chunks.
    pub(super) fn is_of(&self, chunks: &ChunkSet) -> bool {
        Arc::ptr_eq(&self.chunks, chunks)
    }

    /// Returns the number of open windows.
    pub fn open(&self) -> usize {
        let is_open = |window: &&OnceLock<_>| window.get().is_some();
        self.windows.iter().filter(is_open).count()
    }

    /// Returns the rule with this number in the dictionary.
    pub fn rule(&self, number: u16) -> Rule {
        Rule(load(self.rules.words(), usize::from(number)))
    }

    /// Returns the extended rule with this number.
    pub fn extended(&self, number: u32) -> Extended {
        let first = number as usize * EXTENDED_WORDS;
        let word = |at| load(self.extended.words(), first + at);
        extended_from_words([word(0), word(1), word(2), word(3)])
    }

    /// Returns the rule for an address in the mapped file.
    pub fn rule_at(&self, mapping: &Mapping, address: u64) -> Rule {
        let hole = Rule::special(special::FRAME_POINTER);
        let (Ok(address), true) = (u32::try_from(address), mapping.table != NO_TABLE) else {
            return hole;
        };
        let page = (address >> PAGE_SHIFT).wrapping_sub(mapping.first_page);
        if page >= mapping.pages {
            return hole;
        }
        match self.word(mapping.table.wrapping_add(page)) {
            0 => hole,
            block => self.rule(find_rule(self, block, address)),
        }
    }

    /// Returns a mapping of a list by its index.
    pub fn mapping(&self, list: MappingList, index: u32) -> Option<Mapping> {
        if index >= list.length() {
            return None;
        }
        mapping_at(&self.mappings, list.first() as usize + index as usize)
    }

    /// Returns the mapping that contains an address of a process.
    pub fn find(&self, list: MappingList, address: u64) -> Option<Mapping> {
        let (mut low, mut high) = (0, list.length());
        while low < high {
            let middle = low.midpoint(high);
            let mapping = self.mapping(list, middle)?;
            if address < mapping.start {
                high = middle;
            } else if address >= mapping.end {
                low = middle + 1;
            } else {
                return Some(mapping);
            }
        }
        None
    }
}

/// Number of double words in a mapping.
pub const MAPPING_DOUBLE_WORDS: usize = size_of::<Mapping>() / 8;

/// Converts a mapping to its words in memory.
pub fn mapping_to_double_words(mapping: &Mapping) -> [u64; MAPPING_DOUBLE_WORDS] {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [
        mapping.start,
        mapping.end,
        mapping.bias,
        pair(mapping.table, mapping.first_page),
        pair(mapping.pages, mapping.reserved),
    ]
}

/// Returns the mapping at a place of `MAPPINGS`.
pub fn mapping_at(mappings: &Shared, index: usize) -> Option<Mapping> {
    let first = index.checked_mul(MAPPING_DOUBLE_WORDS)?;
    let place = mappings.double_words().get(first..)?;
    let [start, end, bias, table, pages] = place
        .first_chunk::<MAPPING_DOUBLE_WORDS>()?
        .each_ref()
        .map(|double_word| double_word.load(Ordering::Acquire));
    Some(Mapping {
        start,
        end,
        bias,
        table: table as u32,
        first_page: (table >> 32) as u32,
        pages: pages as u32,
        reserved: (pages >> 32) as u32,
    })
}

fn load(words: &[AtomicU32], index: usize) -> u32 {
    words
        .get(index)
        .map_or(0, |word| word.load(Ordering::Acquire))
}
