//! The samples of a selection, in the order of the groups of their threads: a
//! counting sort. What is counted group after group then needs one row of
//! counters, which stays in a cache; a row for each group, all at once, would
//! be too much for any, and mostly empty.

use super::selection::Selection;
use crate::tables::{Sample, ThreadSlot};

/// One value for each sample, those of a group one after the other.
pub(super) struct Runs {
    values: Vec<u32>,
    /// Empty if every sample weighs one.
    weights: Vec<u64>,
    /// By group: where its run ends.
    ends: Vec<u32>,
}

impl Runs {
    /// Two passes: tallies say how many samples each group has, and so where its run
    /// begins; then each sample is put at the next free place of its group.
    pub(super) fn collect(
        selection: &Selection,
        groups: usize,
        group_of: impl Fn(ThreadSlot) -> u32,
        value_of: impl Fn(&Sample) -> u32,
    ) -> Self {
        // Where the next one of each group goes; in the end, where it ends.
        let mut ends = vec![0u32; groups];
        for (slot, tally) in (0..).map(ThreadSlot).zip(&selection.threads) {
            if tally.stored > 0 {
                // As stored, not as weighed: each sample takes one place.
                ends[group_of(slot) as usize] += tally.stored;
            }
        }
        let mut all = 0;
        for end in &mut ends {
            all += std::mem::replace(end, all);
        }
        let mut values = vec![0u32; all as usize];
        let weighted = if selection.is_weighted { all } else { 0 };
        let mut weights = vec![0u64; weighted as usize];
        selection.visit(selection.stamps, |sample| {
            let end = &mut ends[group_of(sample.thread) as usize];
            values[*end as usize] = value_of(&sample);
            if let Some(weight) = weights.get_mut(*end as usize) {
                *weight = sample.weight;
            }
            *end += 1;
        });
        Self {
            values,
            weights,
            ends,
        }
    }

    /// The values of a group's samples, and what these weigh.
    #[inline]
    pub(super) fn of(&self, group: u32) -> impl ExactSizeIterator<Item = (u32, u64)> {
        let start = match group.checked_sub(1) {
            Some(before) => self.ends[before as usize],
            None => 0,
        };
        let end = self.ends[group as usize];
        (start as usize..end as usize)
            .map(|at| (self.values[at], self.weights.get(at).copied().unwrap_or(1)))
    }
}
