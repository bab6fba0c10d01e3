//! Free ranges of a numbered space. The smallest range that fits is taken, and adjacent free ranges
//! are merged; none crosses a boundary.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The free ranges.
#[derive(Debug)]
pub struct Ranges {
    /// Ranges never cross a multiple of `1 << boundary_shift`.
    boundary_shift: u32,
    /// Length of each free range by its start.
    by_start: BTreeMap<u32, u32>,
    /// All free ranges as (length, start).
    by_length: BTreeSet<(u32, u32)>,
    free: u64,
}

impl Ranges {
    /// Makes a space in which nothing is free. No range that is taken crosses a multiple of `1 <<
    /// boundary_shift`.
    pub fn new(boundary_shift: u32) -> Self {
        Self {
            boundary_shift,
            by_start: BTreeMap::new(),
            by_length: BTreeSet::new(),
            free: 0,
        }
    }

    /// Takes a range of this length, and returns its start.
    pub fn take(&mut self, length: u32) -> Option<u32> {
        assert!(length > 0);
        let (found, start) = *self.by_length.range((length, 0)..).next()?;
        self.take_from(start, found, length);
        Some(start)
    }

    /// Takes a range of this length that begins outside of `avoided`, and returns its start. That must
    /// begin and end at boundaries.
    pub fn take_outside(&mut self, length: u32, avoided: &Range<u32>) -> Option<u32> {
        assert!(length > 0);
        let mut fitting = self.by_length.range((length, 0)..);
        let (found, start) = *fitting.find(|(_, start)| !avoided.contains(start))?;
        self.take_from(start, found, length);
        Some(start)
    }

    /// Returns the free length from `range.start` to `range.end`, which have to be boundaries.
    pub fn free_in(&self, range: &Range<u32>) -> u64 {
        let inside = self.by_start.range(range.clone());
        inside.map(|(_, length)| u64::from(*length)).sum()
    }

    /// Takes exactly this range, if all of it is free.
    pub fn take_at(&mut self, start: u32, length: u32) -> bool {
        let Some((&first, &found)) = self.by_start.range(..=start).next_back() else {
            return false;
        };
        let (end, found_end) = (start + length, first + found);
        if found_end < end {
            return false;
        }
        self.remove(first, found);
        if first < start {
            self.insert(first, start - first);
        }
        if end < found_end {
            self.insert(end, found_end - end);
        }
        true
    }

    /// Frees a range. Returns the free range that it is now part of.
    pub fn give(&mut self, start: u32, length: u32) -> (u32, u32) {
        assert!(length > 0);
        let (mut start, mut length) = (start, length);
        if let Some((&before, &before_length)) = self.by_start.range(..start).next_back() {
            assert!(before + before_length <= start, "given twice");
            if before + before_length == start && self.together(before, start) {
                self.remove(before, before_length);
                (start, length) = (before, before_length + length);
            }
        }
        if let Some((&after, &after_length)) = self.by_start.range(start..).next() {
            assert!(start + length <= after, "given twice");
            if start + length == after && self.together(start, after) {
                self.remove(after, after_length);
                length += after_length;
            }
        }
        self.insert(start, length);
        (start, length)
    }

    /// Returns the total free length.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Takes the beginning of a free range that is `found` long.
    fn take_from(&mut self, start: u32, found: u32, length: u32) {
        self.remove(start, found);
        if found > length {
            self.insert(start + length, found - length);
        }
    }

    fn together(&self, a: u32, b: u32) -> bool {
        a >> self.boundary_shift == b >> self.boundary_shift
    }

    fn insert(&mut self, start: u32, length: u32) {
        self.by_start.insert(start, length);
        self.by_length.insert((length, start));
        self.free += u64::from(length);
    }

    fn remove(&mut self, start: u32, length: u32) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
        self.free -= u64::from(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_smallest_that_fits() {
        let mut ranges = Ranges::new(31);
        ranges.give(0, 100);
        ranges.give(200, 10);
        assert_eq!(ranges.take(8), Some(200));
        assert_eq!(ranges.take(8), Some(0));
        assert_eq!(ranges.take(93), None);
        assert_eq!(ranges.take(92), Some(8));
    }

    #[test]
    fn boundaries_stay() {
        let mut ranges = Ranges::new(4);
        assert_eq!(ranges.give(0, 16), (0, 16));
        assert_eq!(ranges.give(16, 16), (16, 16));
        assert_eq!(ranges.take(17), None);
    }

    #[test]
    fn elsewhere_or_not_at_all() {
        let mut ranges = Ranges::new(4);
        ranges.give(0, 5);
        ranges.give(16, 8);
        ranges.give(28, 4);
        assert_eq!(
            (ranges.free_in(&(16..32)), ranges.free_in(&(0..16))),
            (12, 5)
        );
        assert_eq!(ranges.take_outside(4, &(16..32)), Some(0));
        assert_eq!(ranges.take_outside(4, &(16..32)), None);
        assert_eq!(ranges.take_outside(4, &(0..16)), Some(28));
        assert_eq!(ranges.free(), 9);
    }

    #[test]
    fn exactly_there_or_not_at_all() {
        let mut ranges = Ranges::new(31);
        ranges.give(10, 10);
        assert!(!ranges.take_at(5, 10) && !ranges.take_at(15, 6));
        assert!(ranges.take_at(12, 3));
        assert!(!ranges.take_at(14, 1));
        assert_eq!(ranges.free(), 7);
    }

    proptest! {
        /// Compares with an array of the owner of each number.
        #[test]
        fn nothing_is_given_out_twice(steps in proptest::collection::vec((any::<bool>(), 1u32..40), 1..200)) {
            let mut ranges = Ranges::new(6);
            for chunk in 0..4 {
                ranges.give(chunk * 64, 64);
            }
            let mut used = [false; 256];
            let mut live: Vec<(u32, u32)> = Vec::new();
            for (take, length) in steps {
                if take {
                    let Some(start) = ranges.take(length) else { continue };
                    prop_assert_eq!(start / 64, (start + length - 1) / 64);
                    for number in start..start + length {
                        prop_assert!(!std::mem::replace(&mut used[number as usize], true));
                    }
                    live.push((start, length));
                } else if !live.is_empty() {
                    let (start, length) = live.swap_remove(length as usize % live.len());
                    used[start as usize..(start + length) as usize].fill(false);
                    ranges.give(start, length);
                }
                let free = used.iter().filter(|used| !**used).count();
                prop_assert_eq!(ranges.free(), free as u64);
            }
            for (start, length) in live {
                ranges.give(start, length);
            }
            // All free ranges are merged again.
            prop_assert!((0..4).all(|_| ranges.take(64).is_some()));
        }
    }
}
