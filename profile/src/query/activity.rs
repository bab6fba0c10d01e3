//! Adds to a report what threads did, as counted by another part that followed them. Threads that
//! waited all the time have no sample; rows are added for them.

use super::Scope;
use super::threads::{process_row_of, thread_row_of};
use crate::few;
use crate::wait::RUN;
use crate::{Activity, Metric, ProcessId, ProcessRow, Report, ThreadRow, View};
use std::collections::HashMap;
use std::sync::Arc;

/// The activity of one thread in the window of a report.
#[derive(Debug, Clone)]
pub struct Doing {
    /// Its process.
    pub pid: u32,
    /// Its tid.
    pub tid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// What it did.
    pub activity: Activity,
}

impl Report {
    /// Sets the activity in the rows of threads, and in the rows of processes the sum of their
    /// threads. Threads without a sample get a row if the scope is of whole threads and
    /// `with_others` is set, as far as the view knows their processes.
    pub fn add_activities(
        &mut self,
        view: &View,
        scope: &Scope,
        with_others: bool,
        all: impl IntoIterator<Item = Doing>,
    ) {
        let ids = living_by_pid(view);
        let rows = (0..).zip(&self.threads);
        let rows: HashMap<(u32, u32), usize> =
            rows.map(|(at, row)| ((row.pid, row.tid), at)).collect();
        let mut of_process: HashMap<ProcessId, (Activity, u32)> = HashMap::new();
        let mut others = Vec::new();
        let is_whole = scope.cpus.is_empty() && scope.functions.is_empty();
        for doing in all {
            let row = rows.get(&(doing.pid, doing.tid));
            let process = match row {
                Some(at) => Some(self.threads[*at].process),
                None => ids.get(&doing.pid).copied(),
            };
            let Some(process) = process else {
                continue;
            };
            let (sum, waiting) = of_process.entry(process).or_default();
            sum.add(&doing.activity);
            *waiting += 1;
            match row {
                Some(at) => {
                    // Another thread may have had the tid before.
                    let before = self.threads[*at].activity.replace(doing.activity);
                    if let (Some(before), Some(sum)) = (before, &mut self.threads[*at].activity) {
                        sum.add(&before);
                    }
                }
                None if with_others && is_whole && is_in(view, scope, process, doing.tid) => {
                    others.push(ThreadRow {
                        activity: Some(doing.activity),
                        ..thread_row_of(process, doing.pid, doing.tid, doing.comm)
                    });
                }
                None => {}
            }
        }
        self.add_processes_of(view, &others, &of_process);
        few::sort_by_key(&mut others, |row| (row.pid, row.tid));
        self.threads.extend(others);
        for row in &mut self.processes {
            row.activity = of_process.get(&row.id).map(|(activity, _)| *activity);
        }
        if with_others && is_whole {
            self.bound_by_activities(&view.info().metric);
        }
    }

    /// Limits the counts of rows to the followed activity: only some of the short waits are sampled
    /// at random, and what they stand for may exceed the length of the window.
    fn bound_by_activities(&mut self, metric: &Metric) {
        let bounded = |samples: u64, activity: &Option<Activity>| {
            let followed = activity
                .as_ref()
                .and_then(|activity| counted_ns(activity, metric));
            followed.map_or(samples, |followed| samples.min(followed))
        };
        for row in &mut self.threads {
            row.samples = bounded(row.samples, &row.activity);
        }
        for row in &mut self.processes {
            row.samples = bounded(row.samples, &row.activity);
        }
    }

    /// Adds the processes of threads without a sample that have no row yet.
    fn add_processes_of(
        &mut self,
        view: &View,
        others: &[ThreadRow],
        of_process: &HashMap<ProcessId, (Activity, u32)>,
    ) {
        let mut missing: Vec<ProcessId> = others.iter().map(|row| row.process).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|id| self.processes.iter().all(|row| row.id != *id));
        self.processes
            .extend(missing.into_iter().map(|id| ProcessRow {
                threads: of_process.get(&id).map_or(0, |(_, threads)| *threads),
                ..process_row_of(view, id)
            }));
    }
}

/// The part of a thread's activity that a metric counts, in nanoseconds; `None` if it counts
/// something else.
fn counted_ns(activity: &Activity, metric: &Metric) -> Option<u64> {
    let all: u64 = activity.ns.iter().sum();
    if *metric == Metric::wall() {
        Some(all)
    } else if *metric == Metric::off_cpu() {
        Some(all - activity.ns[RUN])
    } else {
        None
    }
}

/// Running processes by pid.
fn living_by_pid(view: &View) -> HashMap<u32, ProcessId> {
    let processes = view.tables.processes.by_number();
    let living = processes.into_iter().filter(|(_, process)| !process.exited);
    living.map(|(id, process)| (process.pid, id)).collect()
}

/// Whether a whole thread is in a scope. Control groups and machines are not checked.
fn is_in(view: &View, scope: &Scope, process: ProcessId, tid: u32) -> bool {
    let of_family = || {
        let known = view.tables.processes.get(process);
        known.is_some_and(|known| known.is_of(&scope.families))
    };
    scope.cgroups.is_empty()
        && scope.hosts.is_empty()
        && (scope.families.is_empty() || of_family())
        && (scope.processes.is_empty() || scope.processes.contains(&process))
        && (scope.threads.is_empty() || scope.threads.contains(&(process, tid)))
}
