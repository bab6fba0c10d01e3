//! *Trends*: self samples of the ten seconds before the end of the window, one
//! count per second, oldest first. The seconds end where the window ends, so
//! the last one is as full as the others. They reach back ten seconds even if
//! the window is shorter: a trend of one cell would say nothing.

use crate::store::{STAMPS_PER_SECOND, Stamps, Store, ThreadSlot};
use crate::{FunctionId, ProcessId, TREND_LEN};
use std::collections::HashMap;
use std::time::Duration;

type Trend = [u32; TREND_LEN];

pub(super) struct Trends {
    functions: Table,
    threads: Table,
    processes: HashMap<ProcessId, Trend>,
}

impl Trends {
    pub(super) fn collect(store: &Store, now_ns: u64) -> Self {
        let mut functions = Table::new(store.names.owners().len());
        let mut threads = Table::new(store.processes.thread_slots());
        let stamps = Stamps::new(Duration::from_secs(TREND_LEN as u64), now_ns);
        store.history.visit(stamps, |sample| {
            let age = (stamps.last - sample.stamp) / STAMPS_PER_SECOND;
            let second = TREND_LEN - 1 - age as usize;
            let leaf = store.stacks.leaf(sample.stack);
            functions.add(store.innermost(leaf).0, second);
            threads.add(sample.thread.0, second);
        });
        Self {
            processes: sum_by_process(store, &threads),
            functions,
            threads,
        }
    }

    pub(super) fn function(&self, id: FunctionId) -> Trend {
        self.functions.get(id.0)
    }

    pub(super) fn thread(&self, slot: ThreadSlot) -> Trend {
        self.threads.get(slot.0)
    }

    pub(super) fn process(&self, id: ProcessId) -> Trend {
        self.processes.get(&id).copied().unwrap_or_default()
    }
}

/// All threads' trends, not only those with a row: the window may be shorter.
fn sum_by_process(store: &Store, threads: &Table) -> HashMap<ProcessId, Trend> {
    let mut processes: HashMap<ProcessId, Trend> = HashMap::new();
    for (slot, trend) in threads.iter() {
        let process = store.processes.thread(ThreadSlot(slot)).process;
        let sum = processes.entry(process).or_default();
        sum.iter_mut().zip(trend).for_each(|(sum, n)| *sum += n);
    }
    processes
}

/// Trends by number: most numbers have none, so the trends themselves lie in a
/// table of their own.
struct Table {
    /// Where in `trends`, plus one; 0 is none.
    places: Vec<u32>,
    trends: Vec<Trend>,
}

impl Table {
    fn new(numbers: usize) -> Self {
        Self {
            places: vec![0; numbers],
            trends: Vec::new(),
        }
    }

    #[inline]
    fn add(&mut self, number: u32, second: usize) {
        let place = &mut self.places[number as usize];
        if *place == 0 {
            self.trends.push(Trend::default());
            *place = self.trends.len() as u32;
        }
        self.trends[*place as usize - 1][second] += 1;
    }

    fn get(&self, number: u32) -> Trend {
        match self.places[number as usize] {
            0 => Trend::default(),
            place => self.trends[place as usize - 1],
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Trend)> {
        (0..)
            .zip(&self.places)
            .filter(|(_, place)| **place > 0)
            .map(|(number, place)| (number, &self.trends[*place as usize - 1]))
    }
}
