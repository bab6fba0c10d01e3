//! The processes as a table. A row is one life of a process: if a pid is used again, that is
//! another row.

pub mod draw;
use crate::knobs::CountedAlone;
use crate::lists::family::Member;
use crate::lists::groups::{By, Common};
use crate::lists::people;
use crate::lists::table::Item;
use crate::views::people::Person;
use crate::words::{person, units};
use profile::{Activity, Family, ProcessDetails, ProcessId, ProcessRow, Report, TREND_LEN};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// The id of a process without samples, which is in the tree only because processes with samples
/// descend from it.
pub const UNSAMPLED: ProcessId = ProcessId(u32::MAX);

/// Stands for a name if rows that are counted together have different ones.
const SEVERAL: &str = "many";

/// A column that the processes can be sorted by.
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

    fn part(keys: Vec<Self::Key>) -> CountedAlone {
        CountedAlone::Processes(keys)
    }

    fn part_of_group(&self, by: By) -> Option<CountedAlone> {
        let host = self.details.host.as_ref().filter(|_| by == By::Host)?;
        Some(CountedAlone::Hosts(vec![Arc::clone(host)]))
    }

    fn part_of_family(&self, report: &Report) -> Option<CountedAlone> {
        let family = Family {
            pid: self.pid,
            host: self.details.host.clone(),
        };
        let descends =
            |row: &ProcessRow| row.details.host == family.host && family.is_above(&row.details);
        let has_any = report.processes.iter().any(descends);
        has_any.then(|| CountedAlone::Families(vec![family]))
    }

    fn is_counted(&self) -> bool {
        self.id != UNSAMPLED
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

    const GROUPINGS: &'static [By] = &[By::Host, By::Unit, By::Command];

    fn is_grouping_offered(by: By, report: &Report) -> bool {
        match by {
            By::Host => people::are_of_several_machines(report),
            // Of processes from a file or a server units may not be known.
            By::Unit => (report.processes.iter()).any(|row| row.details.cgroup.is_some()),
            By::Command | By::Name => true,
        }
    }

    fn rows(report: &Report) -> &[Self] {
        &report.processes
    }

    // The id of one life of a process, because its pid may have been used again in the window.
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

    /// Returns the command with its arguments, which distinguishes processes that run the same
    /// program.
    fn name(&self) -> &str {
        person::command(self)
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    // A parent is known only by its pid, as in `/proc`.
    fn member(&self) -> Option<Member> {
        Some(Member {
            id: self.pid,
            parent: self.details.parent,
        })
    }

    fn ancestors(&self) -> Vec<Self> {
        let all = &self.details.ancestors;
        let row = |at: usize| {
            let (pid, comm) = &all[at];
            ProcessRow {
                id: UNSAMPLED,
                pid: *pid,
                comm: Arc::clone(comm),
                samples: 0,
                kernel_samples: 0,
                threads: 0,
                top_function: None,
                top_wait: None,
                exited: false,
                details: ProcessDetails {
                    // The parent of the last known ancestor is taken to be init, pid 1.
                    parent: Some(all.get(at + 1).map_or(1, |(pid, _)| *pid)),
                    host: self.details.host.clone(),
                    ..ProcessDetails::default()
                },
                trend: [0; TREND_LEN],
                activity: None,
            }
        };
        (0..all.len()).map(row).collect()
    }

    fn words(&self) -> String {
        format!("{}[{}]", self.comm, self.pid)
    }

    fn scope_words(&self, count: usize) -> String {
        match count {
            0 | 1 => self.words(),
            several => {
                let several = units::count(several as u64);
                // The sum of a unit or a machine has no command.
                match (
                    &self.details.command_line,
                    &self.details.cgroup,
                    &self.details.host,
                ) {
                    (Some(_), ..) => format!("{several} processes {}", person::short_command(self)),
                    (None, None, Some(host)) if **host != *SEVERAL => host.to_string(),
                    _ => format!("{several} processes of {}", self.group_name(By::Unit)),
                }
            }
        }
    }

    // Processes whose control group is not known form a group, too: its sum shows what the units
    // lack. Processes without a command line belong to the kernel, and each has a name of its own.
    fn common(&self, by: By) -> Option<Common> {
        let name = match by {
            By::Unit => unit_path(self).unwrap_or(""),
            By::Command | By::Name => person::command(self),
            By::Host => self.details.host.as_deref().unwrap_or(""),
        };
        Some(Common {
            process: None,
            name: name.into(),
        })
    }

    fn sum(rows: &[&Self], by: By) -> Option<Self> {
        let first = rows.first()?;
        let is_same_user = |row: &&Self| row.details.user == first.details.user;
        let user = if rows.iter().all(is_same_user) {
            first.details.user.clone()
        } else {
            Some(SEVERAL.into())
        };
        let is_same_unit = rows.iter().all(|row| unit_path(row) == unit_path(first));
        let cgroup = unit_path(first).filter(|_| is_same_unit && by != By::Host);
        let command = match by {
            By::Unit | By::Host => None,
            By::Command | By::Name => Some(person::command(first).into()),
        };
        let is_same_host = rows
            .iter()
            .all(|row| row.details.host == first.details.host);
        let host = if is_same_host {
            first.details.host.clone()
        } else {
            Some(SEVERAL.into())
        };
        let tops = rows
            .iter()
            .map(|row| ((&row.top_function, &row.top_wait), row.samples));
        let (top_function, top_wait) = people::top_of(tops);
        let activities = rows.iter().filter_map(|row| row.activity.as_ref());
        Some(ProcessRow {
            id: first.id,
            // Only used for sorting the group; it is not shown.
            pid: rows.iter().map(|row| row.pid).min()?,
            comm: Arc::clone(&first.comm),
            samples: rows.iter().map(|row| row.samples).sum(),
            kernel_samples: rows.iter().map(|row| row.kernel_samples).sum(),
            threads: rows.iter().map(|row| row.threads).sum(),
            top_function,
            top_wait,
            exited: rows.iter().all(|row| row.exited),
            details: ProcessDetails {
                host,
                user,
                cgroup: cgroup.map(Into::into),
                command_line: command,
                ..ProcessDetails::default()
            },
            trend: people::sum_of_trends(rows.iter().map(|row| &row.trend)),
            activity: people::sum_of_activities(activities),
        })
    }

    fn group_name(&self, by: By) -> Cow<'_, str> {
        match (by, self.details.cgroup.as_deref()) {
            (By::Command | By::Name, _) => person::command(self).into(),
            (By::Host, _) => self
                .details
                .host
                .as_deref()
                .unwrap_or("(machine not known)")
                .into(),
            (By::Unit, None) => "(unit not known)".into(),
            (By::Unit, Some(path)) => person::group(path).map_or("(no unit)".into(), Cow::Owned),
        }
    }
}

/// Returns the path of a process's unit, or `None` if its control group is not known.
fn unit_path(row: &ProcessRow) -> Option<&str> {
    row.details.cgroup.as_deref().map(person::group_path)
}

/// Compares two pairs (part, whole) by part / whole, the larger one first. It compares the products
/// `b.part * a.whole` and `a.part * b.whole`, because a division would round. A whole of 0 counts
/// as 1.
pub fn by_share(a: (u64, u64), b: (u64, u64)) -> Ordering {
    let left = u128::from(b.0) * u128::from(a.1.max(1));
    let right = u128::from(a.0) * u128::from(b.1.max(1));
    left.cmp(&right)
}
