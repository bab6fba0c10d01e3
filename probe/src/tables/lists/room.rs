//! Allocates the places of lists in `MAPPINGS`.

use crate::shared::Shared;
use crate::tables::ranges::Ranges;
use crate::tables::reader::{MAPPING_DOUBLE_WORDS, mapping_at, mapping_to_double_words};
use crate::tables::resting::Resting;
use probe_ebpf::table::{MAPPING_UNIT, Mapping, MappingList, PROCESS_MAPPINGS_MAX};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for lists, in units of [`MAPPING_UNIT`] mappings.
#[derive(Debug)]
pub struct Room {
    memory: Arc<Shared>,
    free: Ranges,
    resting: Resting<(u32, u32)>,
    resting_units: u32,
    units: u32,
}

impl Room {
    /// Makes a room in which all of the memory is free.
    pub fn new(memory: Arc<Shared>) -> Self {
        let mappings = memory.double_words().len() / MAPPING_DOUBLE_WORDS;
        // A list has 16 bits for the unit where it begins.
        let units = (mappings / MAPPING_UNIT).min(1 << 16) as u32;
        let mut free = Ranges::new(31);
        free.give(0, units);
        Self {
            memory,
            free,
            resting: Resting::new(),
            resting_units: 0,
            units,
        }
    }

    /// Writes a list; `None` if there is no room. It is not read before it is published.
    pub fn write(&mut self, mappings: &[Mapping], generation: u32) -> Option<MappingList> {
        debug_assert!(mappings.len() <= PROCESS_MAPPINGS_MAX);
        let length = mappings.len() as u16;
        let Some(units) = units_of(u32::from(length)) else {
            return Some(MappingList::new(0, 0, generation));
        };
        let first = self.free.take(units)? * MAPPING_UNIT as u32;
        let place = &self.memory.double_words()[first as usize * MAPPING_DOUBLE_WORDS..];
        let words = mappings.iter().flat_map(mapping_to_double_words);
        for (place, word) in place.iter().zip(words) {
            place.store(word, Ordering::Release);
        }
        Some(MappingList::new(first, length, generation))
    }

    /// Returns the mappings of a list.
    pub fn read(&self, list: MappingList) -> Vec<Mapping> {
        let first = list.first() as usize;
        (first..first + list.length() as usize)
            .filter_map(|index| mapping_at(&self.memory, index))
            .collect()
    }

    /// Frees the place of a list, to be used again after its rest.
    pub fn free(&mut self, list: MappingList, now_ns: u64) {
        let Some(units) = units_of(list.length()) else {
            return;
        };
        self.resting_units += units;
        let first = list.first() / MAPPING_UNIT as u32;
        self.resting.push((first, units), now_ns);
    }

    /// Frees the places that have rested long enough.
    pub fn sweep(&mut self, now_ns: u64) {
        while let Some((first, units)) = self.resting.pop(now_ns) {
            self.resting_units -= units;
            self.free.give(first, units);
        }
    }

    /// Returns the number of units that are free, or will be after their rest.
    pub fn available(&self) -> u32 {
        self.free.free() as u32 + self.resting_units
    }

    /// Whether there will be more room without anything else leaving.
    pub fn is_any_resting(&self) -> bool {
        self.resting_units > 0
    }

    /// Returns the number of mappings that all lists can have together.
    pub fn mappings(&self) -> usize {
        self.units as usize * MAPPING_UNIT
    }

    /// Returns the number of units that should always be available: the room for the longest
    /// possible list.
    pub fn reserve(&self) -> u32 {
        self.units / 8
    }
}

/// Returns the number of units for a list; `None` for an empty list, which needs no place.
pub fn units_of(length: u32) -> Option<u32> {
    (length > 0).then(|| length.div_ceil(MAPPING_UNIT as u32))
}
