//! Opens the file that a process has mapped, and no other file.
//!
//! The path in a mapping comes from the target and is not trusted: it may be in another mount
//! namespace, may have been replaced or deleted, or may lead by symbolic links to any place that
//! the target wants a privileged profiler to read. So a path is resolved below the process's root,
//! and links stay inside. Only regular local files are ever opened for reading, and no other file
//! system is contacted; which ones are local is known from the kernel's lists of mounts. The opened
//! file is compared with the mapped one.

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

/// What is known about a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct FileSource<'a> {
    /// Path as in `/proc/PID/maps`, including ` (deleted)`.
    pub path: &'a Path,
    /// A process that maps it; `None` if only the path is known.
    pub pid: Option<u32>,
    /// The range of one mapping of the file, which identifies the file in `/proc/PID/map_files`.
    pub range: Option<(u64, u64)>,
    /// Build-id that the kernel reported with the mapping.
    pub build_id: Option<&'a [u8]>,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Inode number; 0 if unknown.
    pub inode: u64,
    /// The open file, if it was opened when it was mapped.
    pub file: Option<&'a OwnedFd>,
    /// The identity of the file at that time. A build-id alone can be forged.
    pub identity: Option<&'a FileIdentity>,
    /// The root directory of a process that maps it, if it was opened while the process lived. It
    /// takes precedence over that of `pid`.
    pub root: Option<&'a OwnedFd>,
}

impl<'a> FileSource<'a> {
    /// A source of which only the path is known; the caller sets the other fields.
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

/// How to handle files on network and FUSE filesystems, which can block a reader for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoteFiles {
    /// They are not opened: [`Reason::Remote`].
    #[default]
    Skip,
    /// They are opened as all others.
    Open,
}

/// Opens the file, or returns why it cannot be opened. Tried in this order:
///
/// 1. the descriptor given,
/// 2. the exact mapping (`/proc/PID/map_files`, needs CAP_CHECKPOINT_RESTORE
///    or CAP_SYS_ADMIN),
/// 3. the path below the root of the process,
/// 4. if that root cannot be used, because the process is gone or another
///    user's, the path as we see it.
///
/// The file is accepted only if it is the mapped one: by build-id if known, else by device and
/// inode. If neither is known, files at all places except the last one are accepted. If the
/// identity of the mapped file is known, an equal build-id is accepted only for that file, and for
/// files that only the same user can write to.
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

/// Returns the more informative of two failures: a file that was found but is not the right one,
/// rather than one that could not be found.
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
