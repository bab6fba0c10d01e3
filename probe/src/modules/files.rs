//! Decides which files are the same module, and which only look the same.
//!
//! A mapping has device, inode and path. They lead to a module like this:
//!
//! ```text
//! (device, inode, generation, path) ──► the file as it was written ──► module
//!                                       the same file, by another path ──┤
//!  the same build-id and length, of files that one user alone can write to ┘
//! ```
//!
//! Anybody can give a file the build-id of another one: so it joins only files whose content the
//! same user controls. A stripped copy has the build-id of the complete file, but neither its names
//! nor its length: the result must not depend on which of them was seen first.

use super::Seen;
use crate::ids::ModuleId;
use crate::sideband::record::{Identity, Map};
use rustix::fs::makedev;
use std::collections::HashMap;
use symbolize::revision::Revision;
use symbolize::{FileIdentity, Files as Way};

/// The files of all modules.
#[derive(Debug, Default)]
pub struct Files {
    by_inode: HashMap<InodeKey, Known>,
    /// Modules by device and inode, as the file itself reports them.
    by_file: HashMap<(u64, u64), (Revision, ModuleId)>,
    by_build: HashMap<Build, ModuleId>,
    turn: u64,
}

/// A file as identified by a mapping. The path is part of it because an inode number is used again
/// after an upgrade, and /proc does not show the generation.
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
    /// The turn in which it was last checked.
    turn: u64,
    /// Whether it was unchanged since it was opened, at that check.
    is_unchanged: bool,
}

/// A build of a program, as claimed by the one user who can write to its files.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Build {
    user: u32,
    size: u64,
    id: Vec<u8>,
}

impl InodeKey {
    /// Returns the key of a mapped file.
    pub fn of(seen: &Seen<'_>) -> Self {
        Self::new(*seen.identity, seen.path)
    }

    fn new(identity: Identity, path: &[u8]) -> Self {
        let path = path.to_vec();
        Self { identity, path }
    }
}

impl Files {
    /// Begins a turn: files that were checked before may have changed by now.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Returns the module of a file that was mapped before, if the file was not written to since.
    pub fn find(&mut self, key: &InodeKey, seen: &Seen<'_>, way: &Way) -> Option<ModuleId> {
        let turn = self.turn;
        let known = self.by_inode.get_mut(key)?;
        let Some(file) = &known.file else {
            return Some(known.module);
        };
        let is_told_apart = is_told_apart(file, seen.identity);
        if !is_told_apart || known.turn != turn {
            let revisions = way.mapped_revisions(seen.pid, &[(seen.start, seen.end)]);
            // The process has ended, or its files may not be accessed. Files that only root can
            // write to are trusted.
            let is_trusted = is_told_apart || file.writers.only() == Some(ROOT);
            let revision = revisions.first().and_then(Option::as_ref);
            known.is_unchanged =
                revision.map_or(is_trusted, |seen| seen.is_as_written(&file.revision));
            known.turn = turn;
        }
        known.is_unchanged.then_some(known.module)
    }

    /// Checks the files that a process has mapped and that are known, all at once: [`Files::find`]
    /// would check them one after the other.
    pub fn look_at(&mut self, pid: u32, maps: &[&Map], way: &Way) {
        let turn = self.turn;
        let mut keys = Vec::new();
        let mut ranges = Vec::new();
        for map in maps {
            let key = InodeKey::new(map.identity, &map.path);
            let known = self.by_inode.get(&key).filter(|known| known.turn != turn);
            let file = known.and_then(|known| known.file.as_ref());
            let is_wanted = file.is_some_and(|file| is_told_apart(file, &map.identity));
            if is_wanted && !keys.contains(&key) {
                ranges.push((map.start, map.start.saturating_add(map.length)));
                keys.push(key);
            }
        }
        // A single file is checked when it is needed.
        if keys.len() < 2 {
            return;
        }
        for (key, revision) in keys.iter().zip(way.mapped_revisions(pid, &ranges)) {
            let Some(known) = self.by_inode.get_mut(key) else {
                continue;
            };
            let file = known.file.as_ref().zip(revision);
            known.is_unchanged =
                file.is_none_or(|(file, revision)| revision.is_as_written(&file.revision));
            known.turn = turn;
        }
    }

    /// Returns the existing module that a file which was just opened belongs to, if there is one.
    pub fn join(&self, file: &FileIdentity, build_id: Option<&[u8]>) -> Option<ModuleId> {
        let number = (file.revision.device(), file.revision.inode());
        let same = self
            .by_file
            .get(&number)
            .filter(|(revision, _)| file.revision.is_as_written(revision));
        let by_build = || self.by_build.get(&build(file, build_id?)?);
        same.map(|(_, module)| *module)
            .or_else(|| by_build().copied())
    }

    /// Stores the module of a mapping; `file` is `None` for a file that could not be opened.
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
        let known = Known {
            module,
            file,
            turn: self.turn,
            is_unchanged: true,
        };
        self.by_inode.insert(key, known);
    }
}

/// Whether the inode number in a mapping identifies one file: on some file systems (btrfs) several
/// files have the same.
fn is_told_apart(file: &FileIdentity, told: &Identity) -> bool {
    let (major, minor) = told.device;
    file.revision.device() == makedev(major, minor)
}

const ROOT: u32 = 0;

fn build(file: &FileIdentity, id: &[u8]) -> Option<Build> {
    let user = file.writers.only()?;
    Some(Build {
        user,
        size: file.revision.size(),
        id: id.to_vec(),
    })
}
