//! Opens files safely: below a root, regular files only, local ones unless requested otherwise.

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

/// Opens `path` for reading as a process with this root directory would, keeping every symbolic
/// link, absolute or with `..`, below the root.
pub fn open_beneath(
    root: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    opening: &mut Opening<'_>,
) -> Result<File, Reason> {
    // First only a reference is opened: really opening a device or a pipe could have side effects.
    let file = walk(root, path, links, opening)?;
    reopen(file.as_fd(), opening)
}

/// Opens the target of a descriptor for reading, if it is a regular file.
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
        // If a server does not respond, that should be noticed here, where a deadline applies.
        _ = file.read(&mut [0]);
        file.rewind().map_err(|error| io_reason(&error))?;
    }
    Ok(file)
}
