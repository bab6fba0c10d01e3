//! A selection by CPU, control group and user.

use super::selection::{Selection, Tally};
use crate::CpuRow;
use crate::few;
use crate::tables::ThreadSlot;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The processes that share a control group or a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// Name of the group or user; `None` for processes of which it is unknown.
    pub name: Option<Arc<str>>,
    /// Samples of all these processes.
    pub samples: u64,
    /// Samples that hit while they were in the kernel.
    pub kernel_samples: u64,
    /// Processes with at least one sample.
    pub processes: u32,
}

impl Selection {
    /// Rows of the CPUs, by number.
    pub fn cpus(&self) -> Vec<CpuRow> {
        let row = |(cpu, tally): (&u16, &Tally)| CpuRow {
            cpu: *cpu,
            samples: tally.samples,
            kernel_samples: tally.in_kernel,
        };
        self.cpus.iter().map(row).collect()
    }

    /// Rows of the control groups, by samples, falling.
    pub fn cgroups(&self) -> Vec<GroupRow> {
        self.group(|details| details.cgroup.clone())
    }

    /// Rows of the users, by samples, falling.
    pub fn users(&self) -> Vec<GroupRow> {
        self.group(|details| details.user.clone())
    }

    /// Sums the samples of threads by process, then of processes by `key`.
    fn group(&self, key: impl Fn(&crate::ProcessDetails) -> Option<Arc<str>>) -> Vec<GroupRow> {
        let table = &self.view.tables.processes;
        let mut processes: HashMap<crate::ProcessId, Tally> = HashMap::new();
        for (slot, tally) in (0..).map(ThreadSlot).zip(&self.threads) {
            if tally.samples > 0 {
                let sum = processes.entry(table.thread(slot).process).or_default();
                sum.samples += tally.samples;
                sum.in_kernel += tally.in_kernel;
            }
        }
        let mut rows: HashMap<Option<Arc<str>>, GroupRow> = HashMap::new();
        for (id, tally) in processes {
            let name = table.get(id).and_then(|process| key(&process.details));
            let row = rows.entry(name.clone()).or_insert(GroupRow {
                name,
                samples: 0,
                kernel_samples: 0,
                processes: 0,
            });
            row.samples += tally.samples;
            row.kernel_samples += tally.in_kernel;
            row.processes += 1;
        }
        let mut rows: Vec<GroupRow> = rows.into_values().collect();
        few::sort_by(&mut rows, |a, b| {
            (Reverse(a.samples), &a.name).cmp(&(Reverse(b.samples), &b.name))
        });
        rows
    }
}
