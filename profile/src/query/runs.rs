//! The samples of a selection, sorted by the groups of their threads with a counting sort. Counting
//! group by group then needs only one row of counters, which stays in a cache. One row of counters
//! for each group at the same time would not fit into any cache, and would be mostly empty.

use super::selection::Selection;
use crate::tables::{Sample, ThreadSlot};

/// One value for each sample; the values of a group are adjacent.
pub(super) struct Runs {
    values: Vec<u32>,
    /// Weight of each sample; empty if all are one.
    weights: Vec<u64>,
    /// End of each group's run.
    ends: Vec<u32>,
}

impl Runs {
    /// Sorts in two passes: the tallies give the number of samples of each group, and so the
    /// beginning of its run; then each sample is put at the next free place of its group.
    pub(super) fn collect(
        selection: &Selection,
        groups: usize,
        group_of: impl Fn(ThreadSlot) -> u32,
        value_of: impl Fn(&Sample) -> u32,
    ) -> Self {
        // The place of each group's next sample; after the loop, the end of its run.
        let mut ends = vec![0u32; groups];
        for (slot, tally) in (0..).map(ThreadSlot).zip(&selection.threads) {
            if tally.stored > 0 {
                // The stored number, not the weighed one: each sample takes one place.
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

    /// The value and the weight of each sample of a group.
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
