//! The ranges of one unit, before they are part of a table.

use std::collections::HashMap;

use super::format::{NONE, TEXT_BYTES_MAX};
use crate::hash::FastState;

/// A place in the texts of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text {
    start: u32,
    len: u32,
}

/// Function, place in source text, and where that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// In `texts`, or `NONE`.
    pub function: u32,
    /// In `files`, or `NONE`.
    pub file: u32,
    pub line: u32,
    pub column: u32,
    /// The place of the call that was inlined, or `NONE`.
    pub parent: u32,
}

/// From `start` to the next range: one place, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub place: u32,
}

/// What one unit says of its code. Its ranges ascend, and the last has no
/// place.
#[derive(Debug, Default)]
pub struct UnitRanges {
    pub(super) ranges: Vec<Range>,
    pub(super) places: Vec<Place>,
    /// Directory and name.
    pub(super) files: Vec<(u32, u32)>,
    pub(super) texts: Vec<Text>,
    text: Vec<u8>,
    place_ids: PlaceIds,
}

/// The numbers of places, while a unit is read: a map that grew for one unit
/// is large enough for the next.
#[derive(Debug, Default)]
pub struct PlaceIds(HashMap<Place, u32, FastState>);

impl UnitRanges {
    /// Those of a new unit.
    pub fn new(mut ids: PlaceIds) -> UnitRanges {
        // To clear a map costs what its size is, not what is in it.
        if ids.0.capacity() / 8 > ids.0.len() {
            ids.0.shrink_to(ids.0.len() * 2);
        }
        ids.0.clear();
        UnitRanges {
            place_ids: ids,
            ..UnitRanges::default()
        }
    }

    pub fn add_text(&mut self, text: &[u8]) -> u32 {
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        self.texts.push(Text {
            start,
            len: text.len() as u32,
        });
        self.texts.len() as u32 - 1
    }

    pub fn add_file(&mut self, directory: &[u8], name: &[u8]) -> u32 {
        let directory = self.add_text(directory);
        let name = self.add_text(name);
        self.files.push((directory, name));
        self.files.len() as u32 - 1
    }

    /// The number of a place, each being kept once.
    pub fn add_place(&mut self, place: Place) -> u32 {
        let next = self.places.len() as u32;
        let id = *self.place_ids.0.entry(place).or_insert(next);
        if id == next {
            self.places.push(place);
        }
        id
    }

    /// From `start` on it is `place`. Ranges come in ascending order; of two
    /// with one start the later counts.
    pub fn add_range(&mut self, start: u64, place: u32) {
        self.ranges.pop_if(|last| last.start == start);
        if self.ranges.last().map_or(NONE, |last| last.place) != place {
            self.ranges.push(Range { start, place });
        }
    }

    /// Ends the unit: what only served building is given back.
    pub fn finish(mut self) -> (UnitRanges, PlaceIds) {
        let ids = std::mem::take(&mut self.place_ids);
        self.ranges.shrink_to_fit();
        self.places.shrink_to_fit();
        (self, ids)
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn text(&self, index: u32) -> &[u8] {
        let Some(text) = self.texts.get(index as usize) else {
            return &[];
        };
        &self.text[text.start as usize..(text.start + text.len) as usize]
    }
}
