//! Resolves a path step by step, so that no file server is contacted on the way.
//!
//! The kernel resolves a whole path in one call, through whatever is mounted on the way. Here each
//! step starts at a directory that is known to be local, goes at most to the root of what is
//! mounted there, and is checked before the next one. Links are read here, and `..` goes back to
//! the directory before, so that nothing leads out of the root.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};

use super::RemoteFiles;
use super::mounts::Kind;
use super::opening::{Opening, Seen};
use crate::Reason;
use crate::error::io_reason;

/// Maximum number of links in a path, the same as the kernel's.
const LINKS_MAX: usize = 40;

/// Whether the last component of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It may; it is followed below the root.
    Follow,
    /// It may not: opening fails.
    Refuse,
}

/// A directory on the way.
struct Step {
    directory: OwnedFd,
    kind: Kind,
    mount: u64,
}

/// Returns a reference to what is at `path` below `root`. It is not opened for reading.
pub fn walk(
    root: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    opening: &mut Opening<'_>,
) -> Result<OwnedFd, Reason> {
    let root = root
        .try_clone_to_owned()
        .map_err(|error| io_reason(&error))?;
    let seen = Seen::of(&root)?;
    let mut way = vec![Step {
        kind: opening.kind_of(root.as_fd(), &seen)?,
        mount: seen.mount,
        directory: root,
    }];
    let mut followed = 0;
    // The next name is at the end of the list.
    let mut names = names_of(path.as_os_str());
    while let Some(name) = names.pop() {
        if name == ".." {
            way.truncate((way.len() - 1).max(1));
            continue;
        }
        let here = way.last().expect("the root stays");
        let (found, seen) = step(here, &name, opening.remote)?;
        let kind = if seen.mount == here.mount {
            here.kind
        } else {
            opening.kind_of(found.as_fd(), &seen)?
        };
        match seen.kind {
            FileType::Symlink => {
                followed += 1;
                let is_refused = names.is_empty() && links == Links::Refuse;
                if is_refused || followed > LINKS_MAX || kind == Kind::Proc {
                    return Err(Reason::Refused);
                }
                if kind == Kind::Remote && opening.remote == RemoteFiles::Skip {
                    return Err(Reason::Remote);
                }
                let target = readlinkat(&found, "", Vec::new())
                    .map_err(|error| io_reason(&error.into()))?
                    .into_bytes();
                if target.starts_with(b"/") {
                    way.truncate(1);
                }
                names.append(&mut names_of(&OsString::from_vec(target)));
            }
            _ if names.is_empty() => return Ok(found),
            FileType::Directory => way.push(Step {
                directory: found,
                kind,
                mount: seen.mount,
            }),
            _ => return Err(Reason::FileGone),
        }
    }
    let last = way.pop().expect("the root stays");
    Ok(last.directory)
}

/// The components of a path, the last one first.
fn names_of(path: &OsStr) -> Vec<OsString> {
    let names = path
        .as_bytes()
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".");
    names
        .rev()
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect()
}

/// Makes one step. In a remote directory only entries that the kernel has cached are found (Linux
/// 5.12): another file system may be mounted there.
fn step(here: &Step, name: &OsStr, remote: RemoteFiles) -> Result<(OwnedFd, Seen), Reason> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = if here.kind == Kind::Remote && remote == RemoteFiles::Skip {
        let cached = ResolveFlags::CACHED;
        openat2(&here.directory, name, flags, Mode::empty(), cached).map_err(|_| Reason::Remote)?
    } else {
        let found = openat(&here.directory, name, flags, Mode::empty());
        found.map_err(|error| io_reason(&error.into()))?
    };
    let seen = Seen::of(&found)?;
    Ok((found, seen))
}
