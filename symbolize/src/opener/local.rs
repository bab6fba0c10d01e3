//! The safe open: below a root, regular files only, local ones unless asked.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, open};

use super::RemoteFiles;
use super::mounts::Kind;
use super::opening::{Opening, Seen};
use super::walk::{Links, walk};
use crate::Reason;
use crate::error::io_reason;
use crate::source::FILE_BYTES_MAX;
use std::os::fd::AsFd as _;

/// Opens `path` for reading as a process with this root directory would, with
/// every symbolic link, absolute or with `..`, kept below the root.
pub fn open_beneath(
    root: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    opening: &mut Opening<'_>,
) -> Result<File, Reason> {
    // Only a reference at first: opening a device or a pipe for real could
    // already do something.
    let file = walk(root, path, links, opening)?;
    reopen(file.as_fd(), opening)
}

/// Opens for reading what a descriptor refers to, if it is a regular file.
pub fn reopen(file: BorrowedFd<'_>, opening: &mut Opening<'_>) -> Result<File, Reason> {
    let seen = Seen::of(file)?;
    let kind = opening.kind_of(file, &seen)?;
    if kind == Kind::Remote && opening.remote == RemoteFiles::Skip {
        return Err(Reason::Remote);
    }
    if seen.kind != FileType::RegularFile || seen.len > FILE_BYTES_MAX {
        return Err(Reason::Refused);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = open(path, flags, Mode::empty());
    let mut file = File::from(opened.map_err(|error| io_reason(&error.into()))?);
    if kind == Kind::Remote {
        // A server that does not answer shall be noticed here, where it is waited for.
        _ = file.read(&mut [0]);
        file.rewind().map_err(|error| io_reason(&error))?;
    }
    Ok(file)
}
