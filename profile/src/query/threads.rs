//! The rows of processes and threads in a window, each with the function that has most of its
//! samples.
//!
//! Counting by thread and function could need as many counters as there are samples. So samples are
//! processed thread by thread, in the order of their processes, and one row of counters is reused
//! for all.

use super::own::named_leaves;
use super::runs::Runs;
use super::selection::{Selection, Tally};
use super::trend::Trends;
use crate::few;
use crate::tables::{Sample, ThreadSlot};
use crate::wait::waiting_name;
use crate::{FrameId, FunctionId, ProcessId, ProcessRow, ThreadRow, View};
use std::cmp::Reverse;
use std::sync::Arc;

/// The state of waiting for a CPU.
const QUEUE: &str = "queue";

/// The rows of processes and of threads that have samples, most samples first.
#[derive(Default)]
pub(super) struct People {
    pub(super) processes: Vec<ProcessRow>,
    pub(super) threads: Vec<ThreadRow>,
}

impl Selection {
    /// Processes and threads, by samples, falling.
    pub fn processes_and_threads(&self) -> (Vec<ProcessRow>, Vec<ThreadRow>) {
        let name = |function| self.view.function(function).name;
        let people = rows(self, name, &Trends::collect(self));
        (people.processes, people.threads)
    }
}

/// Computes the rows; `name` returns the name of a function.
pub(super) fn rows(
    selection: &Selection,
    mut name: impl FnMut(FunctionId) -> Arc<str>,
    trends: &Trends,
) -> People {
    let order = threads_by_process(selection);
    let named = named_leaves(selection);
    // Samples by thread, each with the function that it is charged to.
    let named_of = |sample: &Sample| named.of_stack[sample.stack.0 as usize];
    let runs = Runs::collect(selection, selection.threads.len(), |slot| slot.0, named_of);
    let owners = selection.view.tables.names.owners();
    let mut of_thread = Top::new(owners.len());
    let mut of_process = Top::new(owners.len());
    // Counts pairs of function and wait in the same way: what a function waited for most is taken
    // from its own stacks.
    let mut pairs_of_thread = Top::new(named.pairs.len());
    let mut pairs_of_process = Top::new(named.pairs.len());
    let view = &selection.view;
    let queue = waiting_name(QUEUE);
    let wait_of = |pairs: &Top, function: FunctionId| {
        let leaf_of = |pair: FrameId| named.pairs[pair.0 as usize].1;
        let is_of = |pair: FrameId| named.function(pair.0) == function;
        // Any function can wait for a CPU after it was interrupted or woken, so its other waits are
        // more informative.
        let is_queue = |pair: FrameId| *view.function(leaf_of(pair)).name == *queue;
        let pair = pairs
            .most_of(|pair| is_of(pair) && !is_queue(pair))
            .or_else(|| pairs.most_of(is_of))?;
        let leaf = leaf_of(pair);
        view.is_wait(leaf).then_some(leaf)
    };
    let mut people = People::default();

    for group in order.chunk_by(|a, b| process_of(selection, *a) == process_of(selection, *b)) {
        let mut sum = Tally::default();
        for slot in group {
            let counts = selection.threads[slot.0 as usize];
            sum.samples += counts.samples;
            sum.in_kernel += counts.in_kernel;
            for (value, samples) in runs.of(slot.0) {
                of_thread.add(named.function(value), samples);
                if !named.pairs.is_empty() {
                    pairs_of_thread.add(FrameId(value), samples);
                }
            }
            let top = of_thread.take(|function, samples| of_process.add(function, samples));
            let wait = top.and_then(|top| wait_of(&pairs_of_thread, top));
            pairs_of_thread.take(|pair, samples| pairs_of_process.add(pair, samples));
            people.threads.push(ThreadRow {
                trend: trends.thread(*slot),
                top_function: top.map(&mut name),
                top_wait: wait.map(&mut name),
                ..thread_row(selection, *slot, counts)
            });
        }
        let id = process_of(selection, group[0]);
        let top = of_process.take(|_, _| {});
        let wait = top.and_then(|top| wait_of(&pairs_of_process, top));
        pairs_of_process.take(|_, _| {});
        people.processes.push(ProcessRow {
            threads: group.len() as u32,
            trend: trends.process(id),
            top_function: top.map(&mut name),
            top_wait: wait.map(&mut name),
            ..process_row(selection, id, sum)
        });
    }
    let (processes, threads) = (&mut people.processes, &mut people.threads);
    few::sort_by_key(processes, |row| (Reverse(row.samples), row.pid, row.id));
    few::sort_by_key(threads, |row| {
        (Reverse(row.samples), row.pid, row.tid, row.process)
    });
    people
}

/// The threads that have samples, grouped by process.
fn threads_by_process(selection: &Selection) -> Vec<ThreadSlot> {
    let mut order: Vec<ThreadSlot> = (0..)
        .map(ThreadSlot)
        .zip(&selection.threads)
        .filter(|(_, counts)| counts.samples > 0)
        .map(|(slot, _)| slot)
        .collect();
    order.sort_unstable_by_key(|slot| (process_of(selection, *slot), *slot));
    order
}

fn process_of(selection: &Selection, slot: ThreadSlot) -> ProcessId {
    selection.view.tables.processes.thread(slot).process
}

/// A row without its function and trend. A thread of an unknown process counts as a process of its
/// own.
fn thread_row(selection: &Selection, slot: ThreadSlot, counts: Tally) -> ThreadRow {
    let table = &selection.view.tables.processes;
    let thread = table.thread(slot);
    let process = table.get(thread.process);
    let pid = process.map_or(thread.tid, |p| p.pid);
    ThreadRow {
        samples: counts.samples,
        kernel_samples: counts.in_kernel,
        ..thread_row_of(thread.process, pid, thread.tid, Arc::clone(&thread.comm))
    }
}

/// The row of a thread without samples.
pub(super) fn thread_row_of(process: ProcessId, pid: u32, tid: u32, comm: Arc<str>) -> ThreadRow {
    ThreadRow {
        process,
        pid,
        tid,
        comm,
        samples: 0,
        kernel_samples: 0,
        top_function: None,
        top_wait: None,
        trend: Default::default(),
        activity: None,
    }
}

/// A row without its function, trend and number of threads.
fn process_row(selection: &Selection, id: ProcessId, counts: Tally) -> ProcessRow {
    ProcessRow {
        samples: counts.samples,
        kernel_samples: counts.in_kernel,
        ..process_row_of(&selection.view, id)
    }
}

/// The row of a process without samples and threads.
pub(super) fn process_row_of(view: &View, id: ProcessId) -> ProcessRow {
    let process = view.tables.processes.get(id);
    ProcessRow {
        id,
        pid: process.map_or(0, |p| p.pid),
        comm: process.map(|p| Arc::clone(&p.comm)).unwrap_or_default(),
        samples: 0,
        kernel_samples: 0,
        threads: 0,
        top_function: None,
        top_wait: None,
        exited: process.is_none_or(|p| p.exited),
        details: process.map(|p| p.details.clone()).unwrap_or_default(),
        trend: Default::default(),
        activity: None,
    }
}

/// Finds the most frequent function of a run of samples, and is then reused for the next run.
struct Top {
    counts: Vec<u64>,
    /// Functions whose count is not zero: only these have to be cleared.
    seen: Vec<FunctionId>,
}

impl Top {
    fn new(functions: usize) -> Self {
        Self {
            counts: vec![0; functions],
            seen: Vec::new(),
        }
    }

    #[inline]
    fn add(&mut self, function: FunctionId, samples: u64) {
        let count = &mut self.counts[function.0 as usize];
        if *count == 0 {
            self.seen.push(function);
        }
        *count += samples;
    }

    /// Returns the most frequent function among those that `is_one` accepts.
    fn most_of(&self, is_one: impl Fn(FunctionId) -> bool) -> Option<FunctionId> {
        let seen = self.seen.iter().copied().filter(|one| is_one(*one));
        seen.max_by_key(|one| (self.counts[one.0 as usize], Reverse(*one)))
    }

    /// Returns the most frequent function, calls `tell` with all counts, and resets them to zero.
    fn take(&mut self, mut tell: impl FnMut(FunctionId, u64)) -> Option<FunctionId> {
        let counts = &mut self.counts;
        let count_of = |f: &FunctionId| (counts[f.0 as usize], Reverse(*f));
        let top = self.seen.iter().copied().max_by_key(count_of);
        for function in self.seen.drain(..) {
            tell(function, std::mem::take(&mut counts[function.0 as usize]));
        }
        top
    }
}
