//! *Family*: a process with all that it has started, and what those have started.

use crate::ProcessDetails;
use std::sync::Arc;

/// A process by the number that the system gave it, with all that descend from it. It may have
/// no samples of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// The process that the others descend from.
    pub pid: u32,
    /// The machine that it runs on, in a profile of several.
    pub host: Option<Arc<str>>,
}

impl Family {
    /// Whether a process belongs to it, of which these details are known.
    pub fn has(&self, pid: u32, details: &ProcessDetails) -> bool {
        self.host == details.host && (pid == self.pid || self.is_above(details))
    }

    /// Whether a process of which these details are known belongs to one of them.
    pub fn any_has(families: &[Self], pid: u32, details: &ProcessDetails) -> bool {
        families.iter().any(|family| family.has(pid, details))
    }

    /// Whether a process of which these details are known descends from it.
    pub fn is_above(&self, details: &ProcessDetails) -> bool {
        let mut above = details.ancestors.iter().map(|(pid, _)| *pid);
        details.parent == Some(self.pid) || above.any(|pid| pid == self.pid)
    }
}
