//! Opening the file that a process has mapped, and no other.
//!
//! The path in a mapping is the target's word for it: it may lie in another
//! mount namespace, be replaced or deleted since, or lead by symbolic links to
//! wherever the target wants a privileged profiler to look. So a path is
//! walked below the process's root, and links stay inside; nothing but a regular
//! local file is ever opened for reading, and no other file system is asked
//! anything: which are local is known from the kernel's lists of mounts; and
//! what was opened is compared with what was mapped.

mod candidates;
mod identity;
mod local;
mod mounts;
mod opening;
mod verify;
mod walk;
mod watch;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::Reason;
use candidates::Candidate;

pub use candidates::our_root;
pub(crate) use candidates::{open_link, open_mapping, open_root_of};
pub use identity::FileIdentity;
pub(crate) use local::open_beneath;
pub use mounts::Mounts;
pub use opening::Opening;
pub use walk::Links;
pub use watch::{Blocker, Unwatched, Watch};

/// What is known of a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct FileSource<'a> {
    /// As in `/proc/PID/maps`, ` (deleted)` included.
    pub path: &'a Path,
    /// A process that maps it; `None` if it is only known by its path.
    pub pid: Option<u32>,
    /// The range of one mapping of the file, which names it exactly in
    /// `/proc/PID/map_files`.
    pub range: Option<(u64, u64)>,
    /// As the kernel reported it with the mapping.
    pub build_id: Option<&'a [u8]>,
    /// Major and minor number.
    pub device: (u32, u32),
    /// 0 if not known.
    pub inode: u64,
    /// The file itself, if it was opened when it was mapped.
    pub file: Option<&'a OwnedFd>,
    /// What the file was then. A build-id alone is a stranger's word.
    pub identity: Option<&'a FileIdentity>,
    /// The root directory of a process that maps it, if it was opened while
    /// that lived. It is taken before that of `pid`.
    pub root: Option<&'a OwnedFd>,
}

impl<'a> FileSource<'a> {
    /// A source of which only the path is known, to be completed.
    pub fn new(path: &'a Path) -> FileSource<'a> {
        FileSource {
            path,
            pid: None,
            range: None,
            build_id: None,
            device: (0, 0),
            inode: 0,
            file: None,
            identity: None,
            root: None,
        }
    }
}

/// Files on network and FUSE filesystems can make a reader wait for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoteFiles {
    /// They are not opened: [`Reason::Remote`].
    #[default]
    Skip,
    /// They are opened as all others.
    Open,
}

/// Opens the file, or tells why not. In this order:
///
/// 1. the descriptor given,
/// 2. the exact mapping (`/proc/PID/map_files`, needs CAP_CHECKPOINT_RESTORE
///    or CAP_SYS_ADMIN),
/// 3. the path below the root of the process,
/// 4. if that root cannot be used, because the process is gone or another
///    user's, the path as we see it.
///
/// The file counts only if it is the mapped one: by build-id where one is
/// known, else by device and inode. Where neither is known, all but the last
/// place are believed. If it is known what the mapped file was, a build-id is only
/// believed of that file, and of those that the same user alone can write to.
pub(crate) fn open(source: &FileSource<'_>, opening: &mut Opening<'_>) -> Result<File, Reason> {
    if let Some(pid) = source.pid {
        opening.see_mounts_of(&format!("/proc/{pid}"));
    }
    if source.file.is_none() && opening.is_refused(source.device) {
        return Err(Reason::Remote);
    }
    let mut worst = Reason::FileGone;
    for candidate in candidates::of(source) {
        let opened = candidate
            .open(source, opening)
            .and_then(|file| verify::same_file(&file, source, candidate).map(|()| file));
        match opened {
            Ok(file) => return Ok(file),
            Err(reason) => worst = more_telling(worst, reason),
        }
        if candidate == Candidate::Root && candidates::has_usable_root(source) {
            break;
        }
    }
    Err(worst)
}

/// Of two failures the one that says more: a file that was found but is not
/// the right one before one that could not be found.
fn more_telling(a: Reason, b: Reason) -> Reason {
    let weight = |reason| match reason {
        Reason::FileGone => 0,
        Reason::NoPermission => 1,
        Reason::ChangedOnDisk => 2,
        _ => 3,
    };
    if weight(b) > weight(a) { b } else { a }
}

#[cfg(test)]
mod tests;
