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
use super::held::Held;
use super::inode_key::InodeKey;
use crate::ids::ModuleId;
use crate::sideband::record::{Identity, Map};
use foldhash::{HashMap, HashSet};
use rustix::fs::makedev;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use symbolize::revision::Revision;
use symbolize::{FileIdentity, FileSource, Files as Way, RemoteFiles};

/// A file is held open if a reader is asked for it twice within this time.
const AGAIN: Duration = Duration::from_secs(1);

/// The files of all modules.
#[derive(Debug, Default)]
pub struct Files {
    by_inode: HashMap<InodeKey, Known>,
    /// Modules by device and inode, as the file itself reports them.
    by_file: HashMap<(u64, u64), (Revision, ModuleId)>,
    by_build: HashMap<Build, ModuleId>,
    held: Held,
    turn: u64,
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
    /// When a reader was last asked for it.
    asked: Option<Instant>,
    /// Set if it could not be opened in order to hold it.
    cannot_be_held: bool,
}

/// A build of a program, as claimed by the one user who can write to its files.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Build {
    user: u32,
    size: u64,
    id: Vec<u8>,
}

impl Files {
    /// Begins a turn: files that were checked before may have changed by now.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
        self.held.sweep();
    }

    /// Returns the module of a file that was mapped before, if the file was not written to since.
    pub fn find(&mut self, key: &InodeKey, seen: &Seen<'_>, way: &Way) -> Option<ModuleId> {
        let turn = self.turn;
        let known = self.by_inode.get_mut(key)?;
        let Some(file) = &known.file else {
            return Some(known.module);
        };
        let is_told_apart = is_told_apart(file, seen.identity);
        if is_told_apart && known.turn == turn {
            return known.is_unchanged.then_some(known.module);
        }
        if is_told_apart && let Some(revision) = self.held.revision(key) {
            return known.check(turn, &revision);
        }
        // Without a revision the process has ended, or its files may not be accessed. Files that
        // only root can write to are trusted.
        let is_trusted = is_told_apart || file.writers.only() == Some(ROOT);
        let revisions = way.mapped_revisions(seen.pid, &[(seen.start, seen.end)]);
        let found = known.check_if_known(turn, revisions.first(), is_trusted);
        if is_told_apart && found.is_some() {
            self.hold_if_again(key, seen, way);
        }
        found
    }

    /// Checks the files that a process has mapped and that are known, all at once: [`Files::find`]
    /// would check them one after the other.
    pub fn look_at(&mut self, pid: u32, maps: &[&Map], way: &Way) {
        let turn = self.turn;
        let mut keys = Vec::new();
        let mut wanted = Vec::new();
        for map in maps {
            let key = InodeKey::new(map.identity, &map.path);
            let known = self.by_inode.get_mut(&key);
            let Some(known) = known.filter(|known| known.turn != turn) else {
                continue;
            };
            let is_wanted = known
                .file
                .as_ref()
                .is_some_and(|file| is_told_apart(file, &map.identity) && !keys.contains(&key));
            if !is_wanted {
                continue;
            }
            match self.held.revision(&key) {
                Some(revision) => _ = known.check(turn, &revision),
                None => {
                    wanted.push(*map);
                    keys.push(key);
                }
            }
        }
        // A single file is checked when it is needed.
        if keys.len() < 2 {
            return;
        }
        let end = |map: &Map| map.start.saturating_add(map.length);
        let ranges: Vec<_> = wanted.iter().map(|map| (map.start, end(map))).collect();
        let revisions = way.mapped_revisions(pid, &ranges);
        for ((key, map), revision) in keys.iter().zip(wanted).zip(revisions) {
            let Some(known) = self.by_inode.get_mut(key) else {
                continue;
            };
            if known.check_if_known(turn, Some(&revision), true).is_some() {
                let seen = Seen {
                    pid,
                    start: map.start,
                    end: end(map),
                    path: &map.path,
                    identity: &map.identity,
                };
                self.hold_if_again(key, &seen, way);
            }
        }
    }

    /// Holds a file open if a reader was asked for it a moment ago as well, so that the next time
    /// none has to be asked.
    fn hold_if_again(&mut self, key: &InodeKey, seen: &Seen<'_>, way: &Way) {
        let Some(known) = self.by_inode.get_mut(key) else {
            return;
        };
        let before = known.asked.replace(Instant::now());
        let is_again = before.is_some_and(|before| before.elapsed() <= AGAIN);
        let may_be_held = |file: &&FileIdentity| is_again && self.held.may_take(file);
        let Some(identity) = known.file.as_ref().filter(may_be_held) else {
            return;
        };
        if known.cannot_be_held {
            return;
        }
        let source = FileSource {
            pid: Some(seen.pid),
            range: Some((seen.start, seen.end)),
            device: seen.identity.device,
            inode: seen.identity.inode,
            identity: Some(identity),
            ..FileSource::new(Path::new(OsStr::from_bytes(seen.path)))
        };
        let is_it = |file: &File| {
            let revision = Revision::now(file);
            revision.is_ok_and(|revision| revision.is_as_written(&identity.revision))
        };
        let opened = way.with_remote(RemoteFiles::Skip).open(&source).ok();
        match opened.filter(is_it) {
            Some(file) => self.held.take(key.clone(), file),
            None => known.cannot_be_held = true,
        }
    }

    /// Forgets the files of these modules: those that are mapped again are other modules.
    pub fn forget(&mut self, modules: &HashSet<ModuleId>) {
        self.by_inode
            .retain(|_, known| !modules.contains(&known.module));
        self.by_file
            .retain(|_, (_, module)| !modules.contains(module));
        self.by_build.retain(|_, module| !modules.contains(module));
    }

    /// Returns what identifies the files of a module in mappings, up to `max` of them. Searches all
    /// files.
    pub fn keys_of(&self, module: ModuleId, max: usize) -> Vec<InodeKey> {
        let files = self.by_inode.iter();
        let of_module = files.filter(|(_, known)| known.module == module);
        of_module.map(|(key, _)| key.clone()).take(max).collect()
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
            asked: None,
            cannot_be_held: false,
        };
        self.by_inode.insert(key, known);
    }
}

impl Known {
    /// Notes the current revision of the file; returns its module if it was not written to.
    fn check(&mut self, turn: u64, revision: &Revision) -> Option<ModuleId> {
        let is_as_opened = |file: &FileIdentity| revision.is_as_written(&file.revision);
        self.is_unchanged = self.file.as_ref().is_none_or(is_as_opened);
        self.turn = turn;
        self.is_unchanged.then_some(self.module)
    }

    /// Like [`Known::check`]; without a revision, whether the file is trusted decides.
    fn check_if_known(
        &mut self,
        turn: u64,
        revision: Option<&Option<Revision>>,
        is_trusted: bool,
    ) -> Option<ModuleId> {
        if let Some(Some(revision)) = revision {
            return self.check(turn, revision);
        }
        self.is_unchanged = is_trusted;
        self.turn = turn;
        is_trusted.then_some(self.module)
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
