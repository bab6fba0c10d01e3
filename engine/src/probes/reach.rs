//! In which processes probes are placed, and whose files are searched.

use super::Found;
use probe::call::Scope;
use probe::descendants_of;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Maximum number of processes whose files are searched, if no process is specified.
const PROCESSES_MAX: usize = 10_000;

/// Maximum depth of control groups.
const GROUPS_DEPTH_MAX: u32 = 64;

/// The target, as far as probes need it.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// The specified processes; empty: the whole machine, or what a filter selects.
    pub pids: Vec<u32>,
    /// Whether their children belong to the target as well.
    pub children: bool,
    /// Whether `pids` alone determines the targets.
    pub is_by_pid: bool,
    /// The directory of a control group; the processes in it and below it.
    pub cgroup: Option<PathBuf>,
    /// The program of a command that has not begun to run.
    pub program: Option<PathBuf>,
}

impl Reach {
    /// The processes whose files are searched now.
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

    /// Decides in which processes the probe of a function is placed. The program of the targets is
    /// probed in all processes that run it, so that children are seen from their first call on, and
    /// hits of other processes are ignored by the kernel side. A library is probed only in the
    /// current targets, because all other processes have it mapped as well.
    pub fn scope(&self, found: &Found) -> Scope {
        // The run's own filter decides whose hits of a tracepoint count.
        if found.point.is_some() {
            return Scope::All;
        }
        // Files and processes that a command loads or starts do not exist yet when its probes are
        // placed.
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

    /// Whether every process that hits a probe of this scope is a target: then hits need not be
    /// checked.
    pub fn is_exact(&self, scope: &Scope) -> bool {
        self.is_by_pid && (self.pids.is_empty() || matches!(scope, Scope::Processes(_)))
    }

    /// Whether all specified processes have ended.
    pub fn has_ended(&self) -> bool {
        !self.pids.is_empty() && self.pids.iter().all(|pid| has_ended(*pid))
    }
}

/// Adds the processes of a control group, and of those below it. A group that cannot be read is
/// gone.
fn add_processes_of(group: &Path, depth: u32, all: &mut Vec<u32>) {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let room = PROCESSES_MAX.saturating_sub(all.len());
    // 0 stands for a process of another pid namespace.
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

/// Whether a process has ended. A zombie is still listed, but has no program.
pub fn has_ended(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
