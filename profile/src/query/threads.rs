//! Processes and threads in a window, each with the function that burned most.
//!
//! A count per thread and function could need as many counters as there are
//! samples. So the samples are first brought into the order of their threads,
//! and the threads into that of their processes; then one row of counters, used
//! again and again, does for all.

use super::functions::Functions;
use super::tally::{Tally, ThreadTally};
use super::trend::Trends;
use crate::intern::{NO_STACK, StackId};
use crate::store::{Stamps, Store, ThreadSlot};
use crate::{FunctionId, ProcessId, ProcessRow, ThreadRow};
use std::cmp::Reverse;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct People {
    pub(super) processes: Vec<ProcessRow>,
    pub(super) threads: Vec<ThreadRow>,
}

pub(super) fn rows(
    store: &Store,
    stamps: Stamps,
    tally: &Tally,
    functions: &Functions,
    trends: &Trends,
) -> People {
    let order = threads_by_process(store, tally);
    let leaves = Leaves::collect(store, stamps, tally, &order);
    let mut of_thread = Top::new(store.names.owners().len());
    let mut of_process = Top::new(store.names.owners().len());
    let mut people = People::default();

    for group in order.chunk_by(|a, b| process_of(store, *a) == process_of(store, *b)) {
        let mut sum = ThreadTally::default();
        for slot in group {
            let counts = tally.threads[slot.0 as usize];
            sum.samples += counts.samples;
            sum.in_kernel += counts.in_kernel;
            for leaf in leaves.of(*slot) {
                of_thread.add(*leaf);
                of_process.add(*leaf);
            }
            people.threads.push(ThreadRow {
                trend: trends.thread(*slot),
                top_function: of_thread.take(functions),
                ..thread_row(store, *slot, counts)
            });
        }
        let id = process_of(store, group[0]);
        people.processes.push(ProcessRow {
            threads: group.len() as u32,
            trend: trends.process(id),
            top_function: of_process.take(functions),
            ..process_row(store, id, sum)
        });
    }
    let (processes, threads) = (&mut people.processes, &mut people.threads);
    processes.sort_by_key(|row| (Reverse(row.samples), row.pid, row.id));
    threads.sort_by_key(|row| (Reverse(row.samples), row.pid, row.tid, row.process));
    people
}

/// The threads that have samples, those of one process side by side.
fn threads_by_process(store: &Store, tally: &Tally) -> Vec<ThreadSlot> {
    let mut order: Vec<ThreadSlot> = (0..)
        .map(ThreadSlot)
        .zip(&tally.threads)
        .filter(|(_, counts)| counts.samples > 0)
        .map(|(slot, _)| slot)
        .collect();
    order.sort_unstable_by_key(|slot| (process_of(store, *slot), *slot));
    order
}

fn process_of(store: &Store, slot: ThreadSlot) -> ProcessId {
    store.processes.thread(slot).process
}

fn thread_row(store: &Store, slot: ThreadSlot, counts: ThreadTally) -> ThreadRow {
    let thread = store.processes.thread(slot);
    let process = store.processes.get(thread.process);
    ThreadRow {
        process: thread.process,
        pid: process.map_or(thread.tid, |p| p.pid),
        tid: thread.tid,
        comm: Arc::clone(&thread.comm),
        samples: counts.samples.into(),
        kernel_samples: counts.in_kernel.into(),
        top_function: None,
        trend: Default::default(),
    }
}

fn process_row(store: &Store, id: ProcessId, counts: ThreadTally) -> ProcessRow {
    let process = store.processes.get(id);
    ProcessRow {
        id,
        pid: process.map_or(0, |p| p.pid),
        comm: process.map(|p| Arc::clone(&p.comm)).unwrap_or_default(),
        samples: counts.samples.into(),
        kernel_samples: counts.in_kernel.into(),
        threads: 0,
        top_function: None,
        exited: process.is_none_or(|p| p.exited),
        trend: Default::default(),
    }
}

/// The function on top of each sample, thread after thread.
struct Leaves {
    functions: Vec<FunctionId>,
    /// By thread: where its part ends.
    ends: Vec<u32>,
    starts: Vec<u32>,
}

impl Leaves {
    /// A counting sort: how many each thread has is known by now.
    fn collect(store: &Store, stamps: Stamps, tally: &Tally, order: &[ThreadSlot]) -> Self {
        let mut starts = vec![0u32; tally.threads.len()];
        let mut next = 0;
        for slot in order {
            starts[slot.0 as usize] = next;
            next += tally.threads[slot.0 as usize].samples;
        }
        let owner_of = owner_by_stack(store, tally);
        let mut functions = vec![NO_STACK; next as usize];
        let mut ends = starts.clone();
        store.history.visit(stamps, |sample| {
            let end = &mut ends[sample.thread.0 as usize];
            functions[*end as usize] = owner_of[sample.stack.0 as usize];
            *end += 1;
        });
        Self {
            functions,
            ends,
            starts,
        }
    }

    fn of(&self, slot: ThreadSlot) -> &[FunctionId] {
        let at = slot.0 as usize;
        &self.functions[self.starts[at] as usize..self.ends[at] as usize]
    }
}

/// The function on top of each stack that occurred.
fn owner_by_stack(store: &Store, tally: &Tally) -> Vec<FunctionId> {
    (0..)
        .map(StackId)
        .zip(&tally.stacks)
        .map(|(stack, samples)| match samples {
            0 => NO_STACK,
            _ => store.innermost(store.stacks.leaf(stack)),
        })
        .collect()
}

/// Finds the most frequent function of a run, then of the next one.
struct Top {
    counts: Vec<u32>,
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
    fn add(&mut self, function: FunctionId) {
        let count = &mut self.counts[function.0 as usize];
        if *count == 0 {
            self.seen.push(function);
        }
        *count += 1;
    }

    /// The most frequent one; all counts are zero again afterwards.
    fn take(&mut self, functions: &Functions) -> Option<Arc<str>> {
        let counts = &mut self.counts;
        let count_of = |f: &FunctionId| (counts[f.0 as usize], Reverse(*f));
        let top = self.seen.iter().copied().max_by_key(count_of);
        for function in self.seen.drain(..) {
            counts[function.0 as usize] = 0;
        }
        functions.name(top?)
    }
}
