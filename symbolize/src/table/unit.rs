//! What one unit says of its code, before it is part of a table: leaves like those of
//! the table, with functions and files by numbers of the unit.

use std::sync::{Mutex, PoisonError};

use super::format::NONE;
use super::leaf::{Filling, Leaf, NO_PLACE};
use super::pool::{Pool, Text};

/// Behind a gap as wide as this there is another leaf: other units have code there.
const GAP_MIN: u32 = 256;

/// Of one unit; the largest known have some megabytes. Chains of strangers could need
/// a leaf for each range. What follows is lost.
const LEAVES_BYTES_MAX: usize = 1 << 30;

/// The leaves of a unit. Their ranges ascend, and the last has no place.
#[derive(Debug, Default, Clone)]
pub(super) struct UnitLeaves {
    /// Where the first range starts; ranges count from there.
    pub first: u64,
    bytes: Vec<u8>,
    /// Where in `bytes` each ends.
    ends: Vec<u32>,
}

impl UnitLeaves {
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self, index: usize) -> &[u8] {
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from as usize..self.ends[index] as usize]
    }

    pub fn leaf(&self, index: usize) -> Leaf<'_> {
        Leaf::new(self.bytes(index)).expect("we filled it")
    }
}

/// What one unit says of its code.
#[derive(Debug, Default)]
pub struct UnitRanges {
    pub(super) leaves: UnitLeaves,
    /// What places of the unit refer to, by numbers of the pool; `NONE` where no name was
    /// found.
    pub(super) texts: Box<[u32]>,
    pub(super) files: Box<[u32]>,
}

/// Room in which units are read, one after the other: what grew for one is large
/// enough for the next. What is kept of each is as large as it has to be, and
/// there is nothing between that was given back.
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
    /// Directory and name, both among the texts.
    files: Vec<(u32, u32)>,
    /// Where the last range starts, if it has no place.
    gap: Option<u32>,
}

impl<'d> UnitBuilder<'d> {
    /// A unit without ranges. Takes over the memory of one that was read before.
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

    /// A text, which may be told later.
    pub fn add_text(&mut self, text: Option<Text<'d>>) -> u32 {
        self.texts.push(text);
        self.texts.len() as u32 - 1
    }

    /// The number of a file in this unit.
    pub fn add_file(&mut self, directory: Text<'d>, name: Text<'d>) -> u32 {
        let directory = self.add_text(Some(directory));
        let name = self.add_text(Some(name));
        self.files.push((directory, name));
        self.files.len() as u32 - 1
    }

    /// The leaf that is being filled, in which there is room for a range and so many
    /// places.
    pub fn leaf(&mut self, places: usize) -> &mut Filling {
        if !self.filling.has_room(places) {
            self.put();
        }
        &mut self.filling
    }

    /// From `start` on it is a place of that leaf, or none. Starts ascend. What is
    /// 4 GiB behind the first is left out: no file has any.
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

    /// To be called before a range with a place is added: what follows a wide gap
    /// begins a leaf.
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

    /// Ends the unit: what it says, with texts and files that are those of the pool, and
    /// the room for the next one.
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
    /// Tells a text that was not known, or not by its best name.
    pub fn set_text(&mut self, index: u32, text: Text<'_>, is_better: bool, pool: &mut Pool) {
        if let Some(known) = self.texts.get_mut(index as usize)
            && (is_better || *known == NONE)
        {
            *known = pool.add(text);
        }
    }
}
