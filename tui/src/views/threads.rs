//! The threads as a table, each on its own row.

pub mod draw;
use super::processes::by_share;
use crate::knobs::Part;
use crate::lists::table::Item;
use crate::views::people::Person;
use profile::{Activity, ProcessId, Report, ThreadRow};
use std::cmp::Ordering;

/// The columns that the threads can be sorted by.
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

    fn part(keys: Vec<Self::Key>) -> Part {
        Part::Threads(keys)
    }

    fn who(&self) -> String {
        format!("{}[{}]", self.comm, self.tid)
    }

    fn activity(&self) -> Option<&Activity> {
        self.activity.as_ref()
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

    fn rows(report: &Report) -> &[Self] {
        &report.threads
    }

    // A thread's number alone may have been used again by another process.
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

    // What is no amount: it is sorted from its beginning, amounts from the largest.
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
}
