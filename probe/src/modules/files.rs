//! Which files are one module, and which only look like one.
//!
//! A mapping tells device, inode and path. Behind them are:
//!
//! ```text
//! (device, inode, generation, path) ──► the file as it was written ──► module
//!                                       the same file, by another path ──┤
//!            the same build-id, of files that one user alone can write to ┘
//! ```
//!
//! Anybody can give a file the build-id of another one: it joins only files whose
//! content the same user decides.

use super::Seen;
use crate::ids::ModuleId;
use crate::sideband::record::Identity;
use rustix::fs::makedev;
use std::collections::HashMap;
use symbolize::revision::Revision;
use symbolize::{FileIdentity, Files as Way};

/// The files of all modules.
#[derive(Debug, Default)]
pub struct Files {
    by_inode: HashMap<InodeKey, Known>,
    /// By device and inode, as the file itself tells them.
    by_file: HashMap<(u64, u64), (Revision, ModuleId)>,
    by_build: HashMap<Build, ModuleId>,
    turn: u64,
}

/// A file as a mapping names it. The path is part of it because an inode
/// number is used again after an upgrade, and /proc tells no generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InodeKey {
    identity: Identity,
    path: Vec<u8>,
}

#[derive(Debug)]
struct Known {
    module: ModuleId,
    /// `None` if it could not be opened.
    file: Option<FileIdentity>,
    /// When it was last looked at.
    turn: u64,
}

/// A build of a program, by the word of the one user who can write to its files.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Build {
    user: u32,
    id: Vec<u8>,
}

impl InodeKey {
    pub fn of(seen: &Seen<'_>) -> Self {
        Self {
            identity: *seen.identity,
            path: seen.path.to_vec(),
        }
    }
}

impl Files {
    /// What was looked at before may have changed by now.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// The module of a file that was mapped before, if it has not been written to since.
    pub fn find(&mut self, key: &InodeKey, seen: &Seen<'_>, way: &Way) -> Option<ModuleId> {
        let turn = self.turn;
        let known = self.by_inode.get_mut(key)?;
        let Some(file) = &known.file else {
            return Some(known.module);
        };
        // On some file systems (btrfs) several files have the number that a mapping
        // tells.
        let (major, minor) = seen.identity.device;
        let is_told_apart = file.revision.device() == makedev(major, minor);
        if is_told_apart && known.turn == turn {
            return Some(known.module);
        }
        known.turn = turn;
        match way.mapped_revision(seen.pid, (seen.start, seen.end)) {
            Some(revision) => revision
                .is_as_written(&file.revision)
                .then_some(known.module),
            // The process is gone, or we may not look. What only root writes is no trap.
            None => (is_told_apart || file.writers.only() == Some(ROOT)).then_some(known.module),
        }
    }

    /// The module that a file belongs to which was just opened, if there is one.
    pub fn join(&self, file: &FileIdentity, build_id: Option<&[u8]>) -> Option<ModuleId> {
        let number = (file.revision.device(), file.revision.inode());
        let same = self.by_file.get(&number);
        let same = same.filter(|(revision, _)| file.revision.is_as_written(revision));
        let by_build = || self.by_build.get(&build(file, build_id?)?);
        same.map(|(_, module)| *module)
            .or_else(|| by_build().copied())
    }

    /// Remembers what a mapping is of; `None` for a file that could not be opened.
    pub fn insert(
        &mut self,
        key: InodeKey,
        file: Option<FileIdentity>,
        build_id: Option<&[u8]>,
        module: ModuleId,
    ) {
        if let Some(file) = &file {
            let number = (file.revision.device(), file.revision.inode());
            self.by_file.insert(number, (file.revision.clone(), module));
            if let Some(build) = build_id.and_then(|id| build(file, id)) {
                self.by_build.entry(build).or_insert(module);
            }
        }
        let turn = self.turn;
        self.by_inode.insert(key, Known { module, file, turn });
    }
}

const ROOT: u32 = 0;

fn build(file: &FileIdentity, id: &[u8]) -> Option<Build> {
    let user = file.writers.only()?;
    Some(Build {
        user,
        id: id.to_vec(),
    })
}
