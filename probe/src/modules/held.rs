//! Descriptors of files that are mapped again and again, such as the C library. They tell at once
//! whether a file was written to: asking a reader for that, for each program that starts, was a
//! sixth of what proftop cost on a machine that compiles.
//!
//! Only files on the file system of `/` are held, as an open file keeps its file system from being
//! unmounted. It also keeps the room of a file that is deleted: such files, and those that nobody
//! has mapped for a while, are closed.
//!
//! [`Held::revision`] runs in the thread that asks, which must not wait for a file server: no file
//! is held that another process or machine serves, whatever the user allows to be opened.

use super::inode_key::InodeKey;
use foldhash::{HashMap, HashMapExt as _};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};
use symbolize::FileIdentity;
use symbolize::revision::Revision;

/// Maximum number of files that are held.
const FILES_MAX: usize = 64;

/// A file that nobody has mapped for this long is closed.
const UNUSED: Duration = Duration::from_secs(10);

/// How often files are closed.
const SWEEP: Duration = Duration::from_secs(1);

/// The files that are held.
#[derive(Debug)]
pub struct Held {
    /// The file system of `/`; `None` if it is unknown.
    device: Option<u64>,
    files: HashMap<InodeKey, HeldFile>,
    swept: Instant,
}

#[derive(Debug)]
struct HeldFile {
    file: File,
    /// When it was last seen mapped.
    used: Instant,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            device: fs::metadata("/").map(|root| root.dev()).ok(),
            files: HashMap::new(),
            swept: Instant::now(),
        }
    }
}

impl Held {
    /// Returns the current revision of a file that was just seen mapped; `None` if it is not held.
    pub fn revision(&mut self, key: &InodeKey) -> Option<Revision> {
        let held = self.files.get_mut(key)?;
        held.used = Instant::now();
        Revision::now(&held.file).ok()
    }

    /// Whether a file may be held, and there is room for it.
    pub fn may_take(&self, file: &FileIdentity) -> bool {
        self.device == Some(file.revision.device()) && self.files.len() < FILES_MAX
    }

    /// Holds a file from now on.
    pub fn take(&mut self, key: InodeKey, file: File) {
        let used = Instant::now();
        self.files.insert(key, HeldFile { file, used });
    }

    /// Closes files that were deleted, and those that nobody has mapped for a while. Does so once a
    /// second, however often it is called.
    pub fn sweep(&mut self) {
        if self.swept.elapsed() < SWEEP {
            return;
        }
        self.swept = Instant::now();
        self.files.retain(|_, held| {
            let has_name = held.file.metadata().is_ok_and(|file| file.nlink() > 0);
            has_name && held.used.elapsed() < UNUSED
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sideband::record::Identity;

    fn key(inode: u64) -> InodeKey {
        let identity = Identity {
            device: (8, 1),
            inode,
            generation: 0,
        };
        InodeKey::new(identity, b"/a")
    }

    /// Sweeps when a second has passed, and files were last mapped `ago`.
    fn sweep(held: &mut Held, ago: Duration) {
        held.swept -= SWEEP;
        for file in held.files.values_mut() {
            file.used -= ago;
        }
        held.sweep();
    }

    #[test]
    fn a_file_is_closed_when_it_is_deleted_or_not_used() {
        let mut held = Held::default();
        let kept = tempfile::NamedTempFile::new().unwrap();
        let deleted = tempfile::NamedTempFile::new().unwrap();
        held.take(key(1), kept.reopen().unwrap());
        held.take(key(2), deleted.reopen().unwrap());
        deleted.close().unwrap();
        assert!(held.revision(&key(2)).is_some(), "nobody has swept");
        sweep(&mut held, Duration::ZERO);
        assert_eq!(held.revision(&key(2)), None);
        let revision = Revision::now(kept.as_file()).unwrap();
        assert_eq!(held.revision(&key(1)), Some(revision));
        sweep(&mut held, UNUSED);
        assert_eq!(held.revision(&key(1)), None);
    }

    #[test]
    fn only_files_beside_the_root_are_taken_and_not_too_many() {
        let mut held = Held::default();
        let of = |path: &str| FileIdentity::of(&File::open(path).unwrap()).unwrap();
        assert!(held.may_take(&of("/")));
        assert!(!held.may_take(&of("/proc/version")), "another file system");
        for number in 0..FILES_MAX as u64 {
            held.take(key(number), File::open("/").unwrap());
        }
        assert!(!held.may_take(&of("/")));
    }
}
