//! What proves that a file is the one that a cache entry was made of. A build-id does not: anybody
//! can put any build-id into a file.

use crate::source::Source;
use rustix::process::geteuid;
use std::fmt;

/// How a cache entry is tied to the files that it was made of, depending on who can write to them:
///
/// | only root or we can | others can as well | kept |
/// |---|---|---|
/// | all of them | | by their build-ids, wherever they lie |
/// | | one of them, and we are not root | by the very files, as they were |
/// | | one of them, and we are root | not at all |
///
/// Root's cache entries come only from files that only root can write to: no other user decides
/// what is in the cache, or what it has no room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// No other user can have made the files, so their build-ids identify them.
    Writers,
    /// The files themselves identify the entry as long as they are unchanged: the text names the
    /// files and their revisions.
    Revisions(String),
}

impl Proof {
    /// Returns the proof for something that is made of these files; `None` if it must not be
    /// cached.
    pub fn of(files: &[&Source]) -> Option<Proof> {
        // A file without writers is in memory and belongs to this kernel.
        let ours = |file: &&Source| file.writers().is_none_or(|w| w.are_root_or_us());
        if files.iter().all(ours) {
            return Some(Proof::Writers);
        }
        if geteuid().is_root() {
            return None;
        }
        Proof::by_revisions(files)
    }

    /// Returns the proof for files without a build-id; `None` if one of them is being changed.
    pub fn by_revisions(files: &[&Source]) -> Option<Proof> {
        let revisions: Option<Vec<_>> = files.iter().map(|file| file.revision()).collect();
        let words: Vec<String> = revisions?.iter().map(ToString::to_string).collect();
        Some(Proof::Revisions(words.join("; ")))
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Writers => f.write_str("ours"),
            Proof::Revisions(words) => f.write_str(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    fn source(file: &File) -> Source {
        Source::file(file).unwrap()
    }

    #[test]
    fn what_others_can_write_to_is_not_kept_by_its_build_id() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), file.path()).unwrap();
        let mode = |mode| {
            std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            Proof::of(&[&source(file.as_file())])
        };
        assert_eq!(mode(0o755), Some(Proof::Writers));
        for others_can in [0o775, 0o757] {
            assert_ne!(mode(others_can), Some(Proof::Writers));
            if geteuid().is_root() {
                assert_eq!(mode(others_can), None);
            }
        }
    }

    #[test]
    fn root_keeps_nothing_of_the_files_of_others() {
        if !test_support::is_root_or_skip("only root can give a file away") {
            return;
        }
        let own = std::env::current_exe().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(&own, file.path()).unwrap();
        let ours = source(file.as_file());
        assert_eq!(Proof::of(&[&ours]), Some(Proof::Writers));
        chown(file.path(), Some(65534), None).unwrap();
        let theirs = source(file.as_file());
        assert_eq!(Proof::of(&[&theirs]), None);
        let own = source(&File::open(own).unwrap());
        assert_eq!(Proof::of(&[&own, &theirs]), None);
    }
}
