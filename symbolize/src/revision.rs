//! Which file, as it was last changed: what tells content apart on one machine
//! where nothing in the file does.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Within the steps of a file system's clock a file can change twice and have
/// the same time.
const STEADY_AFTER: Duration = Duration::from_secs(2);

/// A file and the time of its last change. Other content has another one: the
/// time of change is the kernel's, and cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revision {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Revision {
    /// `None` for a file that changed a moment ago, and may again.
    pub fn of(file: &File) -> Option<Revision> {
        let metadata = file.metadata().ok()?;
        let seconds = u64::try_from(metadata.ctime()).ok()?;
        let changed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        (age > STEADY_AFTER).then(|| Revision {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
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
    fn a_file_is_told_from_others() {
        let revision = |path| Revision::of(&File::open(path).unwrap());
        let [own, again, shell] = ["/proc/self/exe", "/proc/self/exe", "/bin/sh"].map(revision);
        assert_eq!(own, again);
        // The test may have been built a moment ago.
        assert!(shell.is_some());
        assert_ne!(own, shell);
    }
}
