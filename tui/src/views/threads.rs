//! The threads as a table. Threads of a process that have the same name share a row, or each thread
//! has its own.

pub mod draw;
use super::processes::by_share;
use crate::context::Context;
use crate::knobs::CountedAlone;
use crate::lists::groups::{By, Common};
use crate::lists::people;
use crate::lists::table::Item;
use crate::views::people::Person;
use crate::words::{held, units};
use profile::{Activity, ProcessId, Report, ThreadRow};
use std::cmp::Ordering;
use std::sync::Arc;

/// A column that the threads can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadColumn {
    Tid,
    Pid,
    Name,
    #[default]
    Cpus,
    Kernel,
}

impl Person for ThreadRow {
    const PLURAL: &'static str = "threads";

    fn part(keys: Vec<Self::Key>) -> CountedAlone {
        CountedAlone::Threads(keys)
    }

    fn activity(&self) -> Option<&Activity> {
        self.activity.as_ref()
    }

    fn waited_for(&self, cx: &Context<'_>) -> Option<String> {
        let waited = cx.shown.waited.as_deref();
        let has_owner = |activity: &&Activity| {
            activity
                .open_wait()
                .is_some_and(|wait| wait.owner.is_some())
        };
        let open = self.activity.as_ref().filter(has_owner);
        let now = open.and_then(|open| held::now(open, self.tid, waited));
        let now = now.map(|now| format!("now {now}"));
        let before = waited.and_then(|waited| held::holders(self.tid, waited));
        let told: Vec<String> = now.into_iter().chain(before).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn top_function(&self) -> Option<&str> {
        self.top_function.as_deref()
    }
}

impl Item for ThreadRow {
    type Key = (ProcessId, u32);
    type Column = ThreadColumn;

    const COLUMNS: &'static [ThreadColumn] = &[
        ThreadColumn::Tid,
        ThreadColumn::Pid,
        ThreadColumn::Name,
        ThreadColumn::Cpus,
        ThreadColumn::Kernel,
    ];

    // A pool of hundreds of threads would fill the screen with rows of very few samples.
    const GROUPINGS: &'static [By] = &[By::Name];
    const IS_GROUPED: bool = true;

    fn rows(report: &Report) -> &[Self] {
        &report.threads
    }

    // The tid alone may have been used again by another process.
    fn key(&self) -> Self::Key {
        (self.process, self.tid)
    }

    fn compare(column: ThreadColumn, a: &Self, b: &Self) -> Ordering {
        match column {
            ThreadColumn::Tid => a.tid.cmp(&b.tid),
            ThreadColumn::Pid => a.pid.cmp(&b.pid),
            ThreadColumn::Name => a.comm.cmp(&b.comm),
            ThreadColumn::Cpus => b.samples.cmp(&a.samples),
            ThreadColumn::Kernel => {
                by_share((a.kernel_samples, a.samples), (b.kernel_samples, b.samples))
            }
        }
    }

    // These columns are not amounts. They are sorted in rising order, amounts in falling order.
    fn is_word(column: ThreadColumn) -> bool {
        matches!(
            column,
            ThreadColumn::Tid | ThreadColumn::Pid | ThreadColumn::Name
        )
    }

    fn name(&self) -> &str {
        &self.comm
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn process(&self) -> Option<ProcessId> {
        Some(self.process)
    }

    fn words(&self) -> String {
        format!("{}[{}]", self.comm, self.tid)
    }

    // "thread" comes first because the main thread of a process has the same name and number as the
    // process.
    fn scope_words(&self, count: usize) -> String {
        match count {
            0 | 1 => format!("thread {}", self.words()),
            several => format!("{} threads {}", units::count(several as u64), self.comm),
        }
    }

    fn common(&self, _: By) -> Option<Common> {
        Some(Common {
            process: Some(self.process),
            name: Arc::clone(&self.comm),
        })
    }

    fn sum(rows: &[&Self], _: By) -> Option<Self> {
        let first = rows.first()?;
        let tops = rows
            .iter()
            .map(|row| ((&row.top_function, &row.top_wait), row.samples));
        let (top_function, top_wait) = people::top_of(tops);
        let activities = rows.iter().filter_map(|row| row.activity.as_ref());
        Some(ThreadRow {
            process: first.process,
            pid: first.pid,
            // Only used for sorting the group; it is not shown.
            tid: rows.iter().map(|row| row.tid).min()?,
            comm: Arc::clone(&first.comm),
            samples: rows.iter().map(|row| row.samples).sum(),
            kernel_samples: rows.iter().map(|row| row.kernel_samples).sum(),
            top_function,
            top_wait,
            trend: people::sum_of_trends(rows.iter().map(|row| &row.trend)),
            activity: people::sum_of_activities(activities),
        })
    }
}
