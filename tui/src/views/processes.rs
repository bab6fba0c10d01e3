//! The processes as a table. One life of a process is one row: a pid that is
//! used again is another.

pub mod draw;
use crate::knobs::Part;
use crate::lists::family::Member;
use crate::lists::table::Item;
use crate::views::people::Person;
use crate::words::person;
use profile::{Activity, ProcessId, ProcessRow, Report};
use std::cmp::Ordering;

/// The columns that the processes can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessColumn {
    Pid,
    User,
    #[default]
    Cpus,
    Kernel,
    Threads,
    Command,
}

impl Person for ProcessRow {
    const PLURAL: &'static str = "processes";

    fn part(keys: Vec<Self::Key>) -> Part {
        Part::Processes(keys)
    }

    fn who(&self) -> String {
        format!("{}[{}]", self.comm, self.pid)
    }

    fn activity(&self) -> Option<&Activity> {
        self.activity.as_ref()
    }

    fn top_function(&self) -> Option<&str> {
        self.top_function.as_deref()
    }
}

impl Item for ProcessRow {
    type Key = ProcessId;
    type Column = ProcessColumn;

    const COLUMNS: &'static [ProcessColumn] = &[
        ProcessColumn::Pid,
        ProcessColumn::User,
        ProcessColumn::Cpus,
        ProcessColumn::Kernel,
        ProcessColumn::Threads,
        ProcessColumn::Command,
    ];

    fn rows(report: &Report) -> &[Self] {
        &report.processes
    }

    // The number of one life: a pid may have been used again in the window.
    fn key(&self) -> ProcessId {
        self.id
    }

    fn compare(column: ProcessColumn, a: &Self, b: &Self) -> Ordering {
        match column {
            ProcessColumn::Pid => a.pid.cmp(&b.pid),
            ProcessColumn::User => a.details.user.cmp(&b.details.user),
            ProcessColumn::Cpus => b.samples.cmp(&a.samples),
            ProcessColumn::Kernel => {
                by_share((a.kernel_samples, a.samples), (b.kernel_samples, b.samples))
            }
            ProcessColumn::Threads => b.threads.cmp(&a.threads),
            ProcessColumn::Command => person::command(a).cmp(person::command(b)),
        }
    }

    fn is_word(column: ProcessColumn) -> bool {
        matches!(
            column,
            ProcessColumn::Pid | ProcessColumn::User | ProcessColumn::Command
        )
    }

    /// The name with the arguments, by which one tells processes apart that have the same
    /// program.
    fn name(&self) -> &str {
        person::command(self)
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    // Parents are known by pid only, as the system has them.
    fn member(&self) -> Option<Member> {
        Some(Member {
            id: self.pid,
            parent: self.details.parent,
        })
    }

    fn words(&self) -> String {
        format!("{}[{}]", self.comm, self.pid)
    }
}

/// Compares two pairs (part, whole) by part / whole, the larger one first. It multiplies
/// crosswise, as division would round: `b.part * a.whole` against `a.part * b.whole`. A whole
/// of 0 counts as 1.
pub fn by_share(a: (u64, u64), b: (u64, u64)) -> Ordering {
    let left = u128::from(b.0) * u128::from(a.1.max(1));
    let right = u128::from(a.0) * u128::from(b.1.max(1));
    left.cmp(&right)
}
