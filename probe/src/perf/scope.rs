//! Decides for which tasks events are opened.

use crate::error::Error;
use crate::family::descendants_of;
use crate::perf_event::Tasks;
use crate::target::Target;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Maximum number of events that are opened for single threads: threads times CPUs. With more, all
/// tasks are watched, if that is permitted, and unwanted samples are dropped.
const EVENTS_MAX: usize = 4096;

/// Which tasks are sampled.
#[derive(Debug)]
pub enum Scope {
    /// All tasks of the machine.
    Everybody,
    /// The tasks of a control group, and of the groups below it, by its open directory.
    Cgroup(OwnedFd),
    /// These threads, and everything that they start.
    Threads(BTreeSet<u32>),
}

impl Scope {
    /// Returns the tasks to watch in order to sample a target.
    pub fn of(target: &Target) -> Result<Self, Error> {
        if let Some(cgroup) = &target.cgroup {
            let directory = File::open(&cgroup.directory).map_err(Error::Cgroup)?;
            return Ok(Self::Cgroup(directory.into()));
        }
        if target.tids.is_empty() && target.pids.is_empty() {
            return Ok(Self::Everybody);
        }
        Ok(Self::Threads(threads(target)))
    }

    /// Returns the tasks whose event is opened first, and owns the rings. An error if no task of
    /// the scope is left.
    pub fn first_tasks(&self) -> io::Result<Tasks<'_>> {
        let is_there = |tid: &&u32| Path::new(&format!("/proc/{tid}")).exists();
        match self {
            Self::Everybody => Ok(Tasks::All),
            Self::Cgroup(directory) => Ok(Tasks::Of(directory.as_fd())),
            Self::Threads(tids) => match tids.iter().find(is_there) {
                Some(tid) => Ok(Tasks::One(*tid)),
                None => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            },
        }
    }

    /// Whether watching single threads would take too many events.
    pub fn is_large(&self, cpus: usize) -> bool {
        matches!(self, Self::Threads(tids) if tids.len() * cpus > EVENTS_MAX)
    }
}

/// Returns the threads that a target has now, with those of the children that it already has.
pub fn threads(target: &Target) -> BTreeSet<u32> {
    if !target.tids.is_empty() {
        return target.tids.iter().copied().collect();
    }
    let children = if target.children {
        descendants_of(&target.pids)
    } else {
        Vec::new()
    };
    let of_process = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
    let pids = target.pids.iter().chain(&children);
    let entries = pids.filter_map(|pid| of_process(pid).ok());
    entries
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use test_support::Process;

    #[test]
    fn a_process_is_all_of_its_threads() {
        let own = std::process::id();
        let target = Target {
            pids: vec![own],
            ..Target::default()
        };
        // The test harness runs this in a thread of its own.
        let found = threads(&target);
        assert!(found.contains(&own) && found.len() > 1, "{found:?}");
        let one = Target {
            tids: vec![own],
            ..target
        };
        assert_eq!(threads(&one), BTreeSet::from([own]));
    }

    #[test]
    fn children_that_are_there_belong_to_it() {
        let child = Process::start(Command::new("sleep").arg("600"));
        let target = |children| Target {
            pids: vec![std::process::id()],
            children,
            ..Target::default()
        };
        assert!(threads(&target(true)).contains(&child.pid()));
        assert!(!threads(&target(false)).contains(&child.pid()));
    }

    #[test]
    fn nothing_named_is_everybody() {
        let scope = Scope::of(&Target::default()).unwrap();
        assert!(matches!(scope, Scope::Everybody));
    }
}
