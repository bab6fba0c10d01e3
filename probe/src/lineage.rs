//! The *lineage* of a process: its parent, its parent's parent, and so on. A shell that only waits
//! for the commands that it has started is never sampled, and would otherwise have no name.

use crate::proc_stat::{name_and_parent, read};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of processes in a lineage. Those of terminals, shells and builds have fewer.
const GENERATIONS_MAX: usize = 16;

/// The highest pid of init and kthreadd. All processes descend from them, so they are left out.
const LAST_OF_SYSTEM: u32 = 2;

/// How long a read entry is used. After that the number may belong to another process.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// Maximum number of remembered processes. With more, all are dropped and read again.
const KNOWN_MAX: usize = 4_096;

/// An ancestor of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its process number.
    pub pid: u32,
    /// Its name, safe to print.
    pub comm: Arc<str>,
}

/// Reads lineages from /proc. Parts that several lineages share are read once.
#[derive(Debug, Default)]
pub struct Lineages {
    known: HashMap<u32, Known>,
}

#[derive(Debug, Clone)]
struct Known {
    comm: Arc<str>,
    parent: u32,
    read: Instant,
}

impl Lineages {
    /// Returns the process of this number and its ancestors, up to init, without it. The list ends
    /// before the first process that has ended.
    pub fn of(&mut self, pid: u32) -> Arc<[Ancestor]> {
        let now = Instant::now();
        let mut lineage = Vec::new();
        let mut next = pid;
        while next > LAST_OF_SYSTEM && lineage.len() < GENERATIONS_MAX {
            let Some(known) = self.look(next, now) else {
                break;
            };
            lineage.push(Ancestor {
                pid: next,
                comm: known.comm,
            });
            next = known.parent;
        }
        lineage.into()
    }

    fn look(&mut self, pid: u32, now: Instant) -> Option<Known> {
        let is_fresh = |known: &&Known| now.saturating_duration_since(known.read) < READ_AGAIN;
        if let Some(known) = self.known.get(&pid).filter(is_fresh) {
            return Some(known.clone());
        }
        let stat = read(&format!("/proc/{pid}/stat")).ok()?;
        let (comm, parent) = name_and_parent(&stat)?;
        let known = Known {
            comm: comm.into(),
            parent,
            read: now,
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(pid, known.clone());
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_descends_from_its_parent_and_nobody_twice() {
        let parent = rustix::process::getppid().expect("who runs this test");
        let parent = parent.as_raw_nonzero().get() as u32;
        let mut lineages = Lineages::default();
        let own = lineages.of(std::process::id());
        assert_eq!(own[0].pid, std::process::id());
        if parent > LAST_OF_SYSTEM {
            assert_eq!(own[1].pid, parent);
            assert_eq!(lineages.of(parent)[..], own[1..]);
        }
        let mut pids: Vec<u32> = own.iter().map(|one| one.pid).collect();
        pids.dedup();
        assert_eq!(pids.len(), own.len());
        assert!(pids.iter().all(|pid| *pid > LAST_OF_SYSTEM));
        // No process has that number.
        assert!(lineages.of(u32::MAX).is_empty());
    }
}
