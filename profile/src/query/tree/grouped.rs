//! Samples by group and stack, in the order of both: a table of counters where
//! that is not too large, else by sorting.

use super::super::selection::Selection;
use super::super::{Cancel, Cancelled};
use std::collections::HashMap;

/// Counters of the table: 32 MB.
const CELLS_MAX: usize = 4 << 20;

/// Tells group, rank of the entry and samples of those that have some. `ranked`
/// are the entries of the selection in their order.
pub(super) fn count(
    selection: &Selection,
    ranked: &[u32],
    group_of: &[u32],
    groups: usize,
    cancel: &Cancel,
    tell: impl FnMut(u32, u32, u64),
) -> Result<(), Cancelled> {
    count_in(selection, ranked, group_of, groups, CELLS_MAX, cancel, tell)
}

fn count_in(
    selection: &Selection,
    ranked: &[u32],
    group_of: &[u32],
    groups: usize,
    cells_max: usize,
    cancel: &Cancel,
    mut tell: impl FnMut(u32, u32, u64),
) -> Result<(), Cancelled> {
    cancel.check()?;
    let ranks = Ranks::new(selection, ranked);
    if groups.saturating_mul(ranked.len()) > cells_max {
        return sort(selection, &ranks, group_of, cancel, tell);
    }
    let mut cells = vec![0u64; groups * ranked.len()];
    selection.visit(selection.stamps, |sample| {
        let group = group_of[sample.thread.0 as usize] as usize;
        let rank = ranks.of(sample.stack.0, sample.ending as u8) as usize;
        cells[group * ranked.len() + rank] += sample.weight;
    });
    cancel.check()?;
    for (group, row) in (0..).zip(cells.chunks(ranked.len().max(1))) {
        let used = (0..).zip(row).filter(|(_, samples)| **samples > 0);
        used.for_each(|(rank, samples)| tell(group, rank, *samples));
    }
    Ok(())
}

fn sort(
    selection: &Selection,
    ranks: &Ranks,
    group_of: &[u32],
    cancel: &Cancel,
    mut tell: impl FnMut(u32, u32, u64),
) -> Result<(), Cancelled> {
    let mut keys: Vec<(u64, u64)> = Vec::new();
    selection.visit(selection.stamps, |sample| {
        let group = u64::from(group_of[sample.thread.0 as usize]);
        let rank = u64::from(ranks.of(sample.stack.0, sample.ending as u8));
        keys.push((group << 32 | rank, sample.weight));
    });
    cancel.check()?;
    keys.sort_unstable();
    for run in keys.chunk_by(|a, b| a.0 == b.0) {
        let samples = run.iter().map(|(_, weight)| weight).sum();
        tell((run[0].0 >> 32) as u32, run[0].0 as u32, samples);
    }
    Ok(())
}

/// The rank of an entry, by its stack and how that ended. Nearly every stack
/// ends in one way only.
struct Ranks {
    by_stack: Vec<(u32, u8)>,
    others: HashMap<(u32, u8), u32>,
}

impl Ranks {
    fn new(selection: &Selection, ranked: &[u32]) -> Self {
        const NONE: u8 = u8::MAX;
        let mut ranks = Self {
            by_stack: vec![(0, NONE); selection.shape_of.len()],
            others: HashMap::new(),
        };
        for (rank, entry) in (0..).zip(ranked) {
            let entry = &selection.entries[*entry as usize];
            let ending = entry.ending as u8;
            let first = &mut ranks.by_stack[entry.stack.0 as usize];
            match first.1 {
                NONE => *first = (rank, ending),
                _ => _ = ranks.others.insert((entry.stack.0, ending), rank),
            }
        }
        ranks
    }

    #[inline]
    fn of(&self, stack: u32, ending: u8) -> u32 {
        match self.by_stack[stack as usize] {
            (rank, known) if known == ending => rank,
            _ => self.others[&(stack, ending)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{frame, sample, store};
    use crate::{Ending, NewSample, Query};

    #[test]
    fn a_table_and_sorting_count_the_same() {
        let mut store = store();
        for n in 0..500u64 {
            let frames = [frame(n % 7), frame(10 + n % 3)];
            store.add_sample(NewSample {
                tid: (n % 5) as u32,
                weight: 1 + n % 4,
                ending: [Ending::Root, Ending::TooDeep][(n % 11 == 0) as usize],
                ..sample(n, &frames)
            });
        }
        let cancel = Cancel::new();
        let selection = store.view().select(&Query::default(), &cancel).unwrap();
        let ranked: Vec<u32> = (0..selection.entries.len() as u32).rev().collect();
        let group_of: Vec<u32> = (0..selection.threads.len() as u32)
            .map(|at| at % 2)
            .collect();
        let count = |cells_max| {
            let mut all = Vec::new();
            let tell = |group, rank, samples| all.push((group, rank, samples));
            count_in(&selection, &ranked, &group_of, 2, cells_max, &cancel, tell).map(|()| all)
        };
        let counted = count(CELLS_MAX).unwrap();
        assert_eq!(counted, count(0).unwrap());
        assert_eq!(
            counted.iter().map(|(.., n)| *n).sum::<u64>(),
            selection.samples()
        );
        assert!(counted.len() > 40);
        cancel.cancel();
        assert!(count(CELLS_MAX).is_err() && count(0).is_err());
    }
}
