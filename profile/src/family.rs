//! *Family*: a process with all of its descendants.

use crate::ProcessDetails;
use std::sync::Arc;

/// A process, named by its pid, with all of its descendants. The process itself may have no
/// samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// The process that the others descend from.
    pub pid: u32,
    /// The machine that it runs on, in a profile of several machines; else `None`.
    pub host: Option<Arc<str>>,
}

impl Family {
    /// Whether the process with this pid and these details belongs to the family.
    pub fn has(&self, pid: u32, details: &ProcessDetails) -> bool {
        self.host == details.host && (pid == self.pid || self.is_above(details))
    }

    /// Whether the process with this pid and these details belongs to one of the families.
    pub fn any_has(families: &[Self], pid: u32, details: &ProcessDetails) -> bool {
        families.iter().any(|family| family.has(pid, details))
    }

    /// Whether the process with these details descends from the family's process.
    pub fn is_above(&self, details: &ProcessDetails) -> bool {
        let mut above = details.ancestors.iter().map(|(pid, _)| *pid);
        details.parent == Some(self.pid) || above.any(|pid| pid == self.pid)
    }
}
