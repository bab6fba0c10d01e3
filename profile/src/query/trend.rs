//! *Trends*: self samples of the ten seconds before the end of the window, one
//! count per second, oldest first. The seconds end where the window ends, so
//! the last one is as full as the others. They reach back ten seconds even if
//! the window is shorter: a trend of one cell would say nothing.

use super::selection::{Selection, ShapeAt};
use super::shape::{Shaper, Step};
use crate::intern::StackId;
use crate::tables::{Sample, ThreadSlot};
use crate::time::STAMPS_PER_SECOND;
use crate::{FunctionId, ProcessId, TREND_LEN, TimeRange};
use std::collections::HashMap;
use std::time::Duration;

type Trend = [u64; TREND_LEN];

/// The trends for the rows of functions, threads and processes of one report.
pub(super) struct Trends {
    functions: Table,
    threads: Table,
    processes: HashMap<ProcessId, Trend>,
}

impl Trends {
    /// Counts the samples of the last [`TREND_LEN`] seconds of the window.
    pub(super) fn collect(selection: &Selection) -> Self {
        let view = &selection.view;
        let mut functions = Table::new(view.tables.names.owners().len());
        let mut threads = Table::new(view.tables.processes.thread_slots());
        let end_ns = selection.window().end_ns;
        let stamps = TimeRange::last(Duration::from_secs(TREND_LEN as u64), end_ns).stamps();
        let mut leaves = Leaves::new(selection);
        view.tables
            .history
            .visit(stamps, &selection.weighing, |sample| {
                if !selection.admission.admits(sample.thread, sample.cpu) {
                    return;
                }
                let Some(leaf) = leaves.of(&sample) else {
                    return;
                };
                let age = (stamps.last - sample.stamp) / STAMPS_PER_SECOND;
                let second = TREND_LEN - 1 - age as usize;
                let weight = sample.weight;
                functions.add(leaf.0, second, weight);
                threads.add(sample.thread.0, second, weight);
            });
        Self {
            processes: sum_by_process(selection, &threads),
            functions,
            threads,
        }
    }

    /// Empty trends: every row has zeros.
    pub(super) fn none() -> Self {
        Self {
            functions: Table::new(0),
            threads: Table::new(0),
            processes: HashMap::new(),
        }
    }

    /// Self samples of a function, one count for each second; zeros if it has none.
    pub(super) fn function(&self, id: FunctionId) -> Trend {
        self.functions.get(id.0)
    }

    /// Samples of a thread, one count for each second.
    pub(super) fn thread(&self, slot: ThreadSlot) -> Trend {
        self.threads.get(slot.0)
    }

    /// Samples of all threads of a process, one count for each second.
    pub(super) fn process(&self, id: ProcessId) -> Trend {
        self.processes.get(&id).copied().unwrap_or_default()
    }
}

/// The function that samples are charged to, also for samples outside of the window.
struct Leaves<'a> {
    selection: &'a Selection,
    shaper: Shaper<'a>,
    /// The function of stacks that have no sample in the window; `None` if the filter drops the
    /// stack.
    others: HashMap<StackId, Option<FunctionId>>,
    scratch: Vec<u32>,
}

impl<'a> Leaves<'a> {
    fn new(selection: &'a Selection) -> Self {
        let query = &selection.query;
        Self {
            selection,
            shaper: Shaper::new(&selection.view, &query.scope, &query.filter),
            others: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Returns the function that a sample is charged to; `None` if the filter drops its stack.
    #[inline]
    fn of(&mut self, sample: &Sample) -> Option<FunctionId> {
        let at = self.selection.shape_of[sample.stack.0 as usize];
        if at != ShapeAt::UNSEEN {
            return at.is_kept().then(|| self.selection.leaf(at));
        }
        let (shaper, scratch) = (&self.shaper, &mut self.scratch);
        *self.others.entry(sample.stack).or_insert_with(|| {
            scratch.clear();
            let kept = shaper.append(sample.stack, scratch);
            kept.then(|| Step(scratch[0]).function())
        })
    }
}

/// Sums the trends of all threads by process, including threads without a row: the window may be
/// shorter than the trend.
fn sum_by_process(selection: &Selection, threads: &Table) -> HashMap<ProcessId, Trend> {
    let mut processes: HashMap<ProcessId, Trend> = HashMap::new();
    for (slot, trend) in threads.iter() {
        let process = selection
            .view
            .tables
            .processes
            .thread(ThreadSlot(slot))
            .process;
        let sum = processes.entry(process).or_default();
        sum.iter_mut()
            .zip(trend)
            .for_each(|(sum, n)| *sum = sum.saturating_add(*n));
    }
    processes
}

/// Trends by number. Most numbers have none, so the trends are stored in a separate table.
struct Table {
    /// Index in `trends` plus one; 0 if there is no trend.
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

    /// Adds to one second of the trend with that number; stops at the largest count.
    #[inline]
    fn add(&mut self, number: u32, second: usize, weight: u64) {
        let place = &mut self.places[number as usize];
        if *place == 0 {
            self.trends.push(Trend::default());
            *place = self.trends.len() as u32;
        }
        let count = &mut self.trends[*place as usize - 1][second];
        *count = count.saturating_add(weight);
    }

    fn get(&self, number: u32) -> Trend {
        match self.places.get(number as usize) {
            None | Some(0) => Trend::default(),
            Some(place) => self.trends[*place as usize - 1],
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Trend)> {
        (0..)
            .zip(&self.places)
            .filter(|(_, place)| **place > 0)
            .map(|(number, place)| (number, &self.trends[*place as usize - 1]))
    }
}
