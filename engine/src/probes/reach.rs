//! In which processes probes are, and whose files are looked through.

use super::Found;
use probe::call::Scope;
use probe::descendants_of;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Processes whose files are looked through, where no process is named.
const PROCESSES_MAX: usize = 10_000;

/// How deeply control groups are looked into.
const GROUPS_DEPTH_MAX: u32 = 64;

/// The target, as far as probes have to know it.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Named ones; empty: the whole machine, or what a filter lets through.
    pub pids: Vec<u32>,
    /// Their children as well.
    pub children: bool,
    /// Nothing but `pids` says who is a target.
    pub is_by_pid: bool,
    /// The directory of a control group; the processes in it and below it.
    pub cgroup: Option<PathBuf>,
    /// The program of a command that has not begun to run.
    pub program: Option<PathBuf>,
}

impl Reach {
    /// The processes whose files are looked through now.
    pub fn processes(&self) -> Vec<u32> {
        if let (true, Some(group)) = (self.pids.is_empty(), &self.cgroup) {
            let mut all = Vec::new();
            add_processes_of(group, GROUPS_DEPTH_MAX, &mut all);
            return all;
        }
        if self.pids.is_empty() {
            let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            return pids.take(PROCESSES_MAX).collect();
        }
        let mut all = self.pids.clone();
        if self.children {
            let room = PROCESSES_MAX.saturating_sub(all.len());
            all.extend(descendants_of(&self.pids).into_iter().take(room));
        }
        all
    }

    /// Where the probe of a function goes. The program of the targets is probed in all
    /// processes that run it, so that children are seen from their first call on, and who
    /// is no target is left out when it is hit. A library is probed in the targets that
    /// there are now alone: everybody else has it mapped as well.
    pub fn scope(&self, found: &Found) -> Scope {
        // The run's own filter says whose hits of a tracepoint count.
        if found.point.is_some() {
            return Scope::All;
        }
        // What a command loads or starts is not there yet when its probes are placed.
        let has_later = found.is_program || self.program.is_some();
        let is_group = self.cgroup.is_some() && self.pids.is_empty();
        if is_group && !found.is_program {
            Scope::Processes(self.processes())
        } else if self.pids.is_empty() || (self.children && has_later) {
            Scope::All
        } else {
            Scope::Processes(self.processes())
        }
    }

    /// Whether everybody who hits a probe of this scope is a target: then nobody has to be
    /// looked up.
    pub fn is_exact(&self, scope: &Scope) -> bool {
        self.is_by_pid && (self.pids.is_empty() || matches!(scope, Scope::Processes(_)))
    }

    /// Whether all processes that were named are gone.
    pub fn has_ended(&self) -> bool {
        !self.pids.is_empty() && self.pids.iter().all(|pid| has_ended(*pid))
    }
}

/// Adds the processes of a control group, and of those below it. One that cannot be read has
/// gone.
fn add_processes_of(group: &Path, depth: u32, all: &mut Vec<u32>) {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let room = PROCESSES_MAX.saturating_sub(all.len());
    // 0 is a process of another pid namespace.
    let pids = listed
        .lines()
        .filter_map(|line| line.parse().ok().filter(|pid: &u32| *pid != 0));
    all.extend(pids.take(room));
    if depth == 0 || all.len() >= PROCESSES_MAX {
        return;
    }
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_processes_of(&entry.path(), depth - 1, all);
        }
    }
}

/// Whether a process runs no program any more. One whose parent has not asked how it ended
/// is still listed, and has no program.
pub fn has_ended(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
