//! What one unit says about its code, before it is part of a table: leaves like those of the table,
//! in which functions and files are numbers of the unit.

use std::sync::{Mutex, PoisonError};

use super::format::NONE;
use super::leaf::{Filling, Leaf, NO_PLACE};
use super::pool::{Pool, Text};

/// A gap of at least this many bytes begins a new leaf, because other units have code there.
const GAP_MIN: u32 = 256;

/// Maximum size of the leaves of one unit; the largest known have some megabytes. In a hostile file
/// each range could need a leaf. What follows is lost.
const LEAVES_BYTES_MAX: usize = 1 << 30;

/// The leaves of a unit. Their ranges ascend, and the last one has no place.
#[derive(Debug, Default, Clone)]
pub(super) struct UnitLeaves {
    /// Start of the first range; ranges are relative to it.
    pub first: u64,
    bytes: Vec<u8>,
    /// End of each leaf in `bytes`.
    ends: Vec<u32>,
}

impl UnitLeaves {
    /// Number of leaves.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the leaf with this index.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from as usize..self.ends[index] as usize]
    }

    /// Returns the leaf with this index, which must exist.
    pub fn leaf(&self, index: usize) -> Leaf<'_> {
        Leaf::new(self.bytes(index)).expect("we filled it")
    }
}

/// What one unit says about its code.
#[derive(Debug, Default)]
pub struct UnitRanges {
    pub(super) leaves: UnitLeaves,
    /// The texts that places of the unit refer to, as numbers of the pool; `NONE` where no name was
    /// found.
    pub(super) texts: Box<[u32]>,
    pub(super) files: Box<[u32]>,
}

/// Buffers in which units are read, one after the other: they keep their capacity. What is kept of
/// each unit is allocated with its exact size, so that memory is not fragmented.
#[derive(Debug, Default)]
pub struct UnitScratch {
    leaves: UnitLeaves,
    filling: Filling,
}

/// A unit that is being read.
#[derive(Debug)]
pub struct UnitBuilder<'d> {
    leaves: UnitLeaves,
    filling: Filling,
    texts: Vec<Option<Text<'d>>>,
    /// Directory and name of each file, as numbers of texts.
    files: Vec<(u32, u32)>,
    /// Start of the last range, if it has no place.
    gap: Option<u32>,
}

impl<'d> UnitBuilder<'d> {
    /// Begins a unit, with the buffers of one that was read before.
    pub fn new(scratch: UnitScratch) -> UnitBuilder<'d> {
        let UnitScratch {
            mut leaves,
            filling,
        } = scratch;
        leaves.bytes.clear();
        leaves.ends.clear();
        UnitBuilder {
            leaves,
            filling,
            texts: Vec::new(),
            files: Vec::new(),
            gap: None,
        }
    }

    /// Adds a text; its contents may be set later.
    pub fn add_text(&mut self, text: Option<Text<'d>>) -> u32 {
        self.texts.push(text);
        self.texts.len() as u32 - 1
    }

    /// Returns the number of a file in this unit.
    pub fn add_file(&mut self, directory: Text<'d>, name: Text<'d>) -> u32 {
        let directory = self.add_text(Some(directory));
        let name = self.add_text(Some(name));
        self.files.push((directory, name));
        self.files.len() as u32 - 1
    }

    /// Returns the leaf that is being filled, with room for a range and `places` places.
    pub fn leaf(&mut self, places: usize) -> &mut Filling {
        if !self.filling.has_room(places) {
            self.put();
        }
        &mut self.filling
    }

    /// Begins a range at `start` with a place of that leaf, or with none. Starts ascend. Ranges 4
    /// GiB after the first one are left out: no file has any.
    pub fn add_range(&mut self, start: u64, place: u16) {
        if self.filling.ranges() == 0 && self.leaves.ends.is_empty() {
            self.leaves.first = start;
        }
        let Ok(start) = u32::try_from(start.saturating_sub(self.leaves.first)) else {
            return;
        };
        if self.leaves.bytes.len() > LEAVES_BYTES_MAX {
            return;
        }
        let gap = self.gap.take();
        if place == NO_PLACE {
            self.gap = gap.or(Some(start));
        }
        self.filling.add_range(start, place);
    }

    /// Begins a new leaf if there is a wide gap before `start`. Must be called before a range with
    /// a place is added.
    pub fn skip_gap(&mut self, start: u64) {
        let behind = |gap: u32| start.saturating_sub(self.leaves.first + u64::from(gap));
        if self.gap.is_some_and(|gap| behind(gap) >= GAP_MIN.into()) {
            self.put();
        }
    }

    fn put(&mut self) {
        if self.filling.ranges() == 0 {
            return self.filling.forget();
        }
        self.filling.finish(&mut self.leaves.bytes);
        self.leaves.ends.push(self.leaves.bytes.len() as u32);
    }

    /// Ends the unit. Returns its contents, with texts and files as numbers of the pool, and the
    /// buffers for the next unit.
    pub fn finish(mut self, pool: &Mutex<Pool>) -> (UnitRanges, UnitScratch) {
        self.put();
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        let texts: Box<[u32]> = self
            .texts
            .into_iter()
            .map(|text| text.map_or(NONE, |text| pool.add(text)))
            .collect();
        let number = |text: &u32| texts[*text as usize];
        let files = self
            .files
            .iter()
            .map(|(directory, name)| pool.add_file(number(directory), number(name)))
            .collect();
        drop(pool);
        let unit = UnitRanges {
            leaves: self.leaves.clone(),
            texts,
            files,
        };
        let room = UnitScratch {
            leaves: self.leaves,
            filling: self.filling,
        };
        (unit, room)
    }
}

impl UnitRanges {
    /// Sets a text that was unknown, or replaces it by a better name.
    pub fn set_text(&mut self, index: u32, text: Text<'_>, is_better: bool, pool: &mut Pool) {
        if let Some(known) = self.texts.get_mut(index as usize)
            && (is_better || *known == NONE)
        {
            *known = pool.add(text);
        }
    }
}
