//! The ranges of one unit, before they are part of a table.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use super::format::{NONE, TEXT_BYTES_MAX};
use crate::hash::FastState;

/// Function, place in source text, and where that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// In as few steps as there are words: millions are looked up.
impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        state.write_u64(pair(self.function, self.file));
        state.write_u64(pair(self.line, self.column));
        state.write_u32(self.parent);
    }
}

/// From `start` to the next range: one place, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// From the unit's first one.
    pub start: u32,
    pub place: u32,
}

/// What one unit says of its code. Its ranges ascend, and the last has no
/// place. Texts mostly are those of the sections.
#[derive(Debug, Default)]
pub struct UnitRanges<'d> {
    /// Where the first range starts.
    pub(super) first: u64,
    pub(super) ranges: Vec<Range>,
    pub(super) places: Vec<Place>,
    /// Directory and name.
    pub(super) files: Vec<(u32, u32)>,
    pub(super) texts: Vec<Cow<'d, [u8]>>,
    /// The numbers of places, while the unit is read.
    place_ids: HashMap<Place, u32, FastState>,
}

/// Room in which units are read, one after the other: what grew for one is large
/// enough for the next. What is kept of each is as large as it has to be, and
/// there is nothing between that was given back.
#[derive(Debug, Default)]
pub struct UnitScratch(Box<UnitRanges<'static>>);

impl<'d> UnitRanges<'d> {
    /// Those of a new unit.
    pub fn new(scratch: UnitScratch) -> UnitRanges<'d> {
        let mut unit = *scratch.0;
        let ids = &mut unit.place_ids;
        // To clear a map costs what its size is, not what is in it.
        if ids.capacity() / 8 > ids.len() {
            ids.shrink_to(ids.len() * 2);
        }
        ids.clear();
        unit.ranges.clear();
        unit.places.clear();
        unit.files.clear();
        unit
    }

    pub fn add_text(&mut self, text: Cow<'d, [u8]>) -> u32 {
        self.texts.push(match text {
            Cow::Borrowed(text) => text[..text.len().min(TEXT_BYTES_MAX)].into(),
            Cow::Owned(mut text) => {
                text.truncate(TEXT_BYTES_MAX);
                text.into()
            }
        });
        self.texts.len() as u32 - 1
    }

    pub fn add_file(&mut self, directory: Cow<'d, [u8]>, name: &'d [u8]) -> u32 {
        let directory = self.add_text(directory);
        let name = self.add_text(name.into());
        self.files.push((directory, name));
        self.files.len() as u32 - 1
    }

    /// The number of a place, each being kept once.
    pub fn add_place(&mut self, place: Place) -> u32 {
        let next = self.places.len() as u32;
        let id = *self.place_ids.entry(place).or_insert(next);
        if id == next {
            self.places.push(place);
        }
        id
    }

    /// From `start` on it is `place`. Ranges come in ascending order; of two
    /// with one start the later counts. What is 4 GiB behind the first is left out:
    /// no file has any.
    pub fn add_range(&mut self, start: u64, place: u32) {
        if self.ranges.is_empty() {
            self.first = start;
        }
        let Ok(start) = u32::try_from(start.saturating_sub(self.first)) else {
            return;
        };
        self.ranges.pop_if(|last| last.start == start);
        if self.ranges.last().map_or(NONE, |last| last.place) != place {
            self.ranges.push(Range { start, place });
        }
    }

    /// Ends the unit: what it says, and the room for the next one.
    pub fn finish(mut self) -> (UnitRanges<'d>, UnitScratch) {
        let mut texts = std::mem::take(&mut self.texts);
        texts.shrink_to_fit();
        let unit = UnitRanges {
            first: self.first,
            ranges: self.ranges.clone(),
            places: self.places.clone(),
            files: self.files.clone(),
            texts,
            place_ids: HashMap::default(),
        };
        let room = UnitRanges {
            texts: Vec::new(),
            ..self
        };
        (unit, UnitScratch(Box::new(room.into_owned())))
    }

    /// With texts of its own: the sections go.
    pub fn into_owned(self) -> UnitRanges<'static> {
        let texts = self.texts.into_iter();
        UnitRanges {
            first: self.first,
            ranges: self.ranges,
            places: self.places,
            files: self.files,
            texts: texts.map(|text| Cow::Owned(text.into_owned())).collect(),
            place_ids: self.place_ids,
        }
    }

    pub(super) fn text(&self, index: u32) -> &[u8] {
        self.texts.get(index as usize).map_or(&[], |text| text)
    }
}
