//! *Trends*: self samples of the ten seconds before the end of the window, one
//! count per second, oldest first. The seconds end where the window ends, so
//! the last one is as full as the others. They reach back ten seconds even if
//! the window is shorter: a trend of one cell would say nothing.

use crate::store::{STAMP_NS, STAMPS_PER_SECOND, Stamps, Store, ThreadSlot};
use crate::{FunctionId, ProcessId, TREND_LEN};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

type Trend = [u32; TREND_LEN];

#[derive(Default)]
pub(super) struct Trends {
    functions: HashMap<FunctionId, Trend>,
    threads: HashMap<u32, Trend>,
    processes: HashMap<ProcessId, Trend>,
}

impl Trends {
    pub(super) fn collect(store: &Store, now_ns: u64) -> Self {
        let stamps = Stamps::new(Duration::from_secs(TREND_LEN as u64), now_ns);
        // Dense counts first: a map would be asked once per sample.
        let mut stacks = vec![0u32; store.stacks.len()];
        let mut threads = vec![0u32; store.processes.thread_slots()];
        let mut trends = Self::default();
        let last = now_ns / STAMP_NS;
        for second in 0..TREND_LEN {
            let age = (TREND_LEN - 1 - second) as u64 * STAMPS_PER_SECOND;
            let Some(end) = last.checked_sub(age) else {
                continue;
            };
            let first = (end + 1).saturating_sub(STAMPS_PER_SECOND);
            let cell = Stamps {
                first: first.max(stamps.first),
                last: end,
            };
            store.history.visit(cell, |sample| {
                stacks[sample.stack.0 as usize] += 1;
                threads[sample.thread.0 as usize] += 1;
            });
            trends.take(store, second, &mut stacks, &mut threads);
        }
        trends
    }

    pub(super) fn function(&self, id: FunctionId) -> Trend {
        get(&self.functions, &id)
    }

    pub(super) fn thread(&self, slot: ThreadSlot) -> Trend {
        get(&self.threads, &slot.0)
    }

    pub(super) fn process(&self, id: ProcessId) -> Trend {
        get(&self.processes, &id)
    }

    /// Moves one second's counts into the maps.
    fn take(&mut self, store: &Store, second: usize, stacks: &mut [u32], threads: &mut [u32]) {
        let owners = store.names.owners();
        for (number, count) in take_counts(stacks) {
            let leaf = store.stacks.leaf(crate::intern::StackId(number));
            add(&mut self.functions, owners[leaf.0 as usize], second, count);
        }
        for (number, count) in take_counts(threads) {
            let process = store.processes.thread(ThreadSlot(number)).process;
            add(&mut self.threads, number, second, count);
            add(&mut self.processes, process, second, count);
        }
    }
}

fn take_counts(counts: &mut [u32]) -> impl Iterator<Item = (u32, u32)> {
    (0..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(number, count)| (number, std::mem::take(count)))
}

fn add<K: Eq + Hash>(trends: &mut HashMap<K, Trend>, key: K, second: usize, count: u32) {
    trends.entry(key).or_default()[second] += count;
}

fn get<K: Eq + Hash>(trends: &HashMap<K, Trend>, key: &K) -> Trend {
    trends.get(key).copied().unwrap_or_default()
}
