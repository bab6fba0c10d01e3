//! The state of a file as of its last change: distinguishes contents on one machine when nothing in
//! the file does.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Statx, StatxTimestamp, makedev};

/// Time after which a modification time is reliable: within one step of a file system's clock a
/// file can change twice and have the same time.
const STEADY_AFTER: Duration = Duration::from_secs(2);

/// A file and the time of its last change. Other contents have another revision: the time of change
/// is set by the kernel, and cannot be forged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revision {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Number of words of an encoded revision: see [`Revision::to_words`].
pub const REVISION_WORDS: usize = 7;

impl Revision {
    /// Returns the revision of a file; `None` if it changed a moment ago, and may change again
    /// unnoticed.
    pub fn of(file: &File) -> Option<Revision> {
        let revision = Revision::now(file).ok()?;
        let seconds = u64::try_from(revision.changed.0).ok()?;
        let changed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        (age > STEADY_AFTER).then_some(revision)
    }

    /// Returns the current revision of a file, even if it may change again unnoticed.
    pub fn now(file: &File) -> io::Result<Revision> {
        let metadata = file.metadata()?;
        Ok(Revision {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Returns the revision from a status that was queried in another way.
    pub fn of_status(status: &Statx) -> Revision {
        let time = |time: StatxTimestamp| (time.tv_sec, i64::from(time.tv_nsec));
        Revision {
            device: makedev(status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
            len: status.stx_size,
            modified: time(status.stx_mtime),
            changed: time(status.stx_ctime),
        }
    }

    /// Encodes the revision for another process of this program.
    pub fn to_words(&self) -> [u64; REVISION_WORDS] {
        let Revision {
            device, inode, len, ..
        } = *self;
        let [modified, changed] = [self.modified, self.changed].map(|(s, ns)| [s, ns]);
        let times = [modified[0], modified[1], changed[0], changed[1]].map(i64::cast_unsigned);
        [device, inode, len, times[0], times[1], times[2], times[3]]
    }

    /// Decodes the result of [`Revision::to_words`].
    pub fn from_words(words: [u64; REVISION_WORDS]) -> Revision {
        let [device, inode, len, times @ ..] = words;
        let times = times.map(u64::cast_signed);
        Revision {
            device,
            inode,
            len,
            modified: (times[0], times[1]),
            changed: (times[2], times[3]),
        }
    }

    /// Device number, as in `st_dev`.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Inode number, as in `st_ino`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether it is the same file, and was not written to in between. The time of change is not
    /// compared, as it also changes when the file is renamed or its last name is removed.
    pub fn is_as_written(&self, before: &Revision) -> bool {
        let written = |revision: &Revision| {
            let Revision { device, inode, .. } = *revision;
            (device, inode, revision.len, revision.modified)
        };
        written(self) == written(before)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((modified, modified_ns), (changed, changed_ns)) = (self.modified, self.changed);
        write!(
            f,
            "{:x}:{} {} bytes, {modified}.{modified_ns:09}, {changed}.{changed_ns:09}",
            self.device, self.inode, self.len
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_a_moment_ago_has_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Revision::of(file.as_file()), None);
    }

    #[test]
    fn both_ways_to_ask_tell_the_same() {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        let file = File::open("/proc/self/exe").unwrap();
        let status = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).unwrap();
        assert_eq!(Revision::of_status(&status), Revision::now(&file).unwrap());
    }

    #[test]
    fn another_name_is_no_other_content() {
        use std::io::Write as _;
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (directory.path().join("1"), directory.path().join("2"));
        let mut file = File::create(&one).unwrap();
        let past = SystemTime::now() - Duration::from_secs(60);
        file.set_modified(past).unwrap();
        let before = Revision::now(&file).unwrap();
        std::fs::rename(&one, &two).unwrap();
        assert!(Revision::now(&file).unwrap().is_as_written(&before));
        file.write_all(b"more").unwrap();
        assert!(!Revision::now(&file).unwrap().is_as_written(&before));
    }

    #[test]
    fn a_file_is_told_from_others() {
        let revision = |path| Revision::of(&File::open(path).unwrap());
        let [own, again, shell] = ["/proc/self/exe", "/proc/self/exe", "/bin/sh"].map(revision);
        assert_eq!(own, again);
        // The shell may have been installed a moment ago.
        assert!(shell.is_some());
        assert_ne!(own, shell);
    }
}
