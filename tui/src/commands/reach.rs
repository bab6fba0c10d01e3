//! Converts the target of a run to the types of the crates `probe` and `engine`.

use crate::cli::Config;
use crate::target::{Target, processes_of};
use engine::probes::Reach;
use probe::child;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Returns the processes and files in which functions of this target are probed, among them the
/// program of the command that the run starts.
pub fn of(config: &Config, target: &Target) -> Reach {
    let program = config.command.as_ref();
    Reach {
        program: program.and_then(|command| find_program(&command.program.to_string_lossy())),
        ..of_target(target)
    }
}

/// Returns the processes in which functions of this target are probed.
pub fn of_target(target: &Target) -> Reach {
    let filters = !target.tids.is_empty() || !target.uids.is_empty();
    let filters = filters || target.comm.is_some() || target.cgroup.is_some();
    // A breakpoint applies to a whole process. Each hit is checked against the threads of the
    // target.
    let (pids, children) = match target.tids[..] {
        [] => (target.pids.clone(), target.children),
        _ => (processes_of(&target.tids), false),
    };
    Reach {
        is_by_pid: !filters,
        pids,
        children,
        cgroup: target.cgroup.as_ref().map(|group| group.directory.clone()),
        program: None,
    }
}

/// Returns the target in the type of the crate `probe`.
pub fn probe_target(target: &Target) -> probe::Target {
    probe::Target {
        pids: target.pids.clone(),
        tids: target.tids.clone(),
        comm: None,
        uids: target.uids.clone(),
        cpus: (!target.cpus.is_empty()).then(|| target.cpus.iter().copied().collect()),
        cgroup: target.cgroup.as_ref().map(|cgroup| probe::CgroupTarget {
            directory: cgroup.directory.clone(),
            id: cgroup.id,
            level: cgroup.level,
        }),
        children: target.children && !target.pids.is_empty(),
    }
}

/// Finds a program in `PATH`, as a shell does.
fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return fs::canonicalize(name).ok();
    }
    let candidates = child::candidates(name.as_ref());
    let is_executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    fs::canonicalize(candidates.into_iter().find(is_executable)?).ok()
}
