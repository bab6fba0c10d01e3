//! What is to be sampled.

use regex::bytes::Regex;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A cgroup of the unified hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupTarget {
    /// Where the hierarchy is mounted here.
    pub directory: PathBuf,
    /// The kernel's number for it.
    pub id: u64,
    /// Depth below the root of the hierarchy, which is 0.
    pub level: u32,
}

/// The tasks to sample: those that meet every condition that is set.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// Any of these processes.
    pub pids: Vec<u32>,
    /// Any of these threads.
    pub tids: Vec<u32>,
    /// The thread's name, or its process's name, matches.
    pub comm: Option<Regex>,
    /// Started by any of these users: by their real ids.
    pub uids: Vec<u32>,
    /// In this cgroup or below it.
    pub cgroup: Option<CgroupTarget>,
    /// Children of `pids`, and theirs, are targets as well, whenever they start.
    pub children: bool,
    /// Only while they run on these CPUs; nothing: on any.
    pub cpus: Option<BTreeSet<u32>>,
}

impl Target {
    /// Whether ticks of this CPU are wanted.
    pub fn is_on(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}
