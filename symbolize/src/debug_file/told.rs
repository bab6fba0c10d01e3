//! Passes the places of debug files to a parser process, which cannot search them itself.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::DebugFiles;
use crate::Files;
use crate::wire::{Taken, put_bytes};

impl DebugFiles {
    /// Appends the places to a message; returns the directories that must be sent along.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Vec<BorrowedFd<'_>> {
        let paths = [
            Some(&self.path),
            self.path_inside.as_ref(),
            self.seen_at.as_ref(),
            self.fetched.as_ref(),
        ];
        for path in paths {
            // An empty path stands for `None`, as no real path is empty.
            let path = path.map_or(Path::new(""), PathBuf::as_path);
            put_bytes(out, path.as_os_str().as_bytes());
        }
        self.roots.iter().map(AsFd::as_fd).collect()
    }

    /// Reads the places from a message; they are searched through `files`. `None` if the message is
    /// malformed.
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
