//! Counts samples by group and stack, in the order of both.

use super::super::runs::Runs;
use super::super::selection::Selection;
use super::super::{Cancel, Cancelled};
use std::collections::HashMap;

/// A group with fewer samples than this fraction of all stacks is sorted; for other groups all
/// stacks are visited.
const SPARSE: usize = 8;

/// Calls back with group, rank of the entry and samples, for those that have samples. `ranked` are
/// the entries of the selection in their order.
///
/// Groups come in their order, and within a group the ranks; ranks without samples are left out.
pub(super) fn count(
    selection: &Selection,
    ranked: &[u32],
    group_of: &[u32],
    groups: usize,
    cancel: &Cancel,
    tell: impl FnMut(u32, u32, u64),
) -> Result<(), Cancelled> {
    let sparse = ranked.len() / SPARSE;
    count_in(selection, ranked, group_of, groups, sparse, cancel, tell)
}

/// Implements `count`, with the limit between the two methods as a parameter, so that a test can
/// use either.
fn count_in(
    selection: &Selection,
    ranked: &[u32],
    group_of: &[u32],
    groups: usize,
    sparse: usize,
    cancel: &Cancel,
    mut tell: impl FnMut(u32, u32, u64),
) -> Result<(), Cancelled> {
    cancel.check()?;
    let ranks = Ranks::new(selection, ranked);
    let runs = Runs::collect(
        selection,
        groups,
        |thread| group_of[thread.0 as usize],
        |sample| ranks.of(sample.stack.0, sample.ending.number()),
    );
    let mut cells = vec![0u64; ranked.len()];
    let mut few: Vec<(u32, u64)> = Vec::new();
    for group in 0..groups as u32 {
        cancel.check()?;
        let run = runs.of(group);
        if run.len() < sparse {
            few.clear();
            few.extend(run);
            few.sort_unstable();
            for same in few.chunk_by(|a, b| a.0 == b.0) {
                let samples = same.iter().map(|(_, weight)| weight).sum();
                if samples > 0 {
                    tell(group, same[0].0, samples);
                }
            }
            continue;
        }
        run.for_each(|(rank, weight)| cells[rank as usize] += weight);
        for (rank, samples) in (0..).zip(&mut cells).filter(|(_, samples)| **samples > 0) {
            tell(group, rank, std::mem::take(samples));
        }
    }
    Ok(())
}

/// The rank of an entry, by its stack and its ending. Nearly every stack has only one ending.
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
            let ending = entry.ending.number();
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
    fn counting_and_sorting_give_the_same() {
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
        let count = |sparse| {
            let mut all = Vec::new();
            let tell = |group, rank, samples| all.push((group, rank, samples));
            count_in(&selection, &ranked, &group_of, 2, sparse, &cancel, tell).map(|()| all)
        };
        let counted = count(0).unwrap();
        assert_eq!(counted, count(usize::MAX).unwrap());
        assert_eq!(
            counted.iter().map(|(.., n)| *n).sum::<u64>(),
            selection.samples()
        );
        assert!(counted.len() > 40);
        cancel.cancel();
        assert!(count(usize::MAX).is_err() && count(0).is_err());
    }
}
