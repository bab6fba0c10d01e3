//! Where debug files may lie, as a process is told that cannot look itself.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::DebugFiles;
use crate::Files;
use crate::wire::{Taken, put_bytes};

impl DebugFiles {
    /// Appends the places to a message; gives the directories that go along.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Vec<BorrowedFd<'_>> {
        let paths = [
            Some(&self.path),
            self.path_inside.as_ref(),
            self.seen_at.as_ref(),
            self.fetched.as_ref(),
        ];
        for path in paths {
            // No path is empty.
            let path = path.map_or(Path::new(""), PathBuf::as_path);
            put_bytes(out, path.as_os_str().as_bytes());
        }
        self.roots.iter().map(AsFd::as_fd).collect()
    }

    /// The places as they were told, to be looked at by `files`; `None` if the bytes are no
    /// such message.
    pub(crate) fn told(
        message: &mut Taken<'_>,
        roots: Vec<OwnedFd>,
        files: &Files,
    ) -> Option<DebugFiles> {
        let mut next = || {
            let path = Path::new(OsStr::from_bytes(message.bytes()?));
            Some(path.to_owned())
        };
        let some = |path: PathBuf| (!path.as_os_str().is_empty()).then_some(path);
        Some(DebugFiles {
            path: next()?,
            path_inside: some(next()?),
            seen_at: some(next()?),
            fetched: some(next()?),
            roots,
            files: files.clone(),
            writers: None,
        })
    }
}
