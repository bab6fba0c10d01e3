//! Counting the samples of a window by what they carry themselves.

use crate::store::{Stamps, Store};
use crate::{Completeness, Ending};
use std::cmp::Reverse;

/// The samples of a window, counted.
pub(super) struct Tally {
    pub(super) samples: u64,
    /// By [`StackId`](crate::intern::StackId).
    pub(super) stacks: Vec<u32>,
    /// By [`ThreadSlot`](crate::store::ThreadSlot).
    pub(super) threads: Vec<ThreadTally>,
    endings: [u64; Ending::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadTally {
    pub(super) samples: u32,
    pub(super) in_kernel: u32,
}

impl Tally {
    pub(super) fn collect(store: &Store, stamps: Stamps) -> Self {
        let mut tally = Self {
            samples: 0,
            stacks: vec![0; store.stacks.len()],
            threads: vec![ThreadTally::default(); store.processes.thread_slots()],
            endings: [0; Ending::ALL.len()],
        };
        store.history.visit(stamps, |sample| {
            tally.samples += 1;
            tally.stacks[sample.stack.0 as usize] += 1;
            let thread = &mut tally.threads[sample.thread.0 as usize];
            thread.samples += 1;
            thread.in_kernel += u32::from(sample.in_kernel);
            tally.endings[sample.ending as usize] += 1;
        });
        tally
    }

    /// What the endings say; of the frames nothing is known yet.
    pub(super) fn completeness(&self) -> Completeness {
        let mut endings: Vec<(Ending, u64)> = Ending::ALL
            .into_iter()
            .zip(self.endings)
            .filter(|(_, samples)| *samples > 0)
            .collect();
        endings.sort_by_key(|(ending, samples)| (Reverse(*samples), *ending));
        let sum = |counts: fn(Ending) -> bool| {
            let counted = endings.iter().filter(|(ending, _)| counts(*ending));
            counted.map(|(_, samples)| samples).sum()
        };
        Completeness {
            user_stacks: sum(Ending::is_user_stack),
            whole: sum(Ending::is_whole),
            endings,
            ..Completeness::default()
        }
    }
}
