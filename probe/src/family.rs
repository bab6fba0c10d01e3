//! Finds the descendants of processes.

use crate::proc_stat::parent_of;
use std::collections::{HashMap, HashSet};
use std::fs;

/// Returns all descendants of these processes, without the processes themselves. Processes that
/// start or end meanwhile may be missing.
pub fn descendants_of(pids: &[u32]) -> Vec<u32> {
    let children = children_by_parent();
    let mut known: HashSet<u32> = pids.iter().copied().collect();
    let mut parents = pids.to_vec();
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        for pid in children.get(&parent).into_iter().flatten() {
            if known.insert(*pid) {
                parents.push(*pid);
                found.push(*pid);
            }
        }
    }
    found
}

/// All processes of the machine, by their parent.
fn children_by_parent() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, parent_of(pid)?))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}
