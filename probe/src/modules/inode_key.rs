//! What identifies a file in the mappings that the kernel reports.

use super::Seen;
use crate::sideband::record::Identity;

/// A file as identified by a mapping. The path is part of it because an inode number is used again
/// after an upgrade, and /proc does not show the generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InodeKey {
    identity: Identity,
    path: Vec<u8>,
}

impl InodeKey {
    /// Returns the key of a mapped file.
    pub fn of(seen: &Seen<'_>) -> Self {
        Self::new(*seen.identity, seen.path)
    }

    /// Returns the key of a file by what the kernel tells of a mapping.
    pub fn new(identity: Identity, path: &[u8]) -> Self {
        let path = path.to_vec();
        Self { identity, path }
    }

    /// Returns the file as it is mapped in this range of a process.
    pub fn seen(&self, pid: u32, (start, end): (u64, u64)) -> Seen<'_> {
        Seen {
            pid,
            start,
            end,
            path: &self.path,
            identity: &self.identity,
        }
    }
}
