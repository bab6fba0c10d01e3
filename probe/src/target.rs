//! What is to be sampled.

use regex::bytes::Regex;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A cgroup of the unified hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupTarget {
    /// The directory of the cgroup, below the place where the hierarchy is mounted.
    pub directory: PathBuf,
    /// The kernel's number of the cgroup.
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
    /// Whether children of `pids`, and their children, are targets as well, whenever they start.
    pub children: bool,
    /// Tasks are sampled only while they run on these CPUs; `None` for all CPUs.
    pub cpus: Option<BTreeSet<u32>>,
}

impl Target {
    /// Whether this CPU is sampled.
    pub fn is_on(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}
