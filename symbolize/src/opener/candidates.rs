//! The places where a mapped file may be found.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use super::local::{open_beneath, reopen};
use super::{Blocker, FileSource, Links, Opening};
use crate::Reason;
use crate::error::io_reason;

/// Suffix that the kernel appends to the path of an unlinked file.
const DELETED: &[u8] = b" (deleted)";

/// A place where the file may be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// The descriptor that the caller has.
    Given,
    /// The link for the mapping itself.
    Mapping,
    /// The path below the process's root.
    Root,
    /// The path below our own root.
    Host,
}

/// Returns the applicable ones, best first.
pub fn of(source: &FileSource<'_>) -> impl Iterator<Item = Candidate> {
    let pid = source.pid.is_some();
    [
        (source.file.is_some(), Candidate::Given),
        (pid && source.range.is_some(), Candidate::Mapping),
        (pid || source.root.is_some(), Candidate::Root),
        (true, Candidate::Host),
    ]
    .into_iter()
    .filter_map(|(applies, candidate)| applies.then_some(candidate))
}

/// Whether paths can be resolved as the process itself would.
pub fn has_usable_root(source: &FileSource<'_>) -> bool {
    own_root(source).is_some()
}

/// The root of the process: the one that was opened, else its current one.
fn own_root(source: &FileSource<'_>) -> Option<OwnedFd> {
    if let Some(root) = source.root {
        return root.try_clone().ok();
    }
    open_root_of(source.pid?).ok()
}

/// Opens our own root directory.
pub fn our_root() -> Option<OwnedFd> {
    open_root("/").ok()
}

/// Opens the root directory of a process.
pub fn open_root_of(pid: u32) -> Result<OwnedFd, Reason> {
    open_root(&format!("/proc/{pid}/root"))
}

fn open_root(path: &str) -> Result<OwnedFd, Reason> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| io_reason(&error.into()))
}

/// Opens what a process has mapped at a range. The link is a kernel link: it leads to the mapped
/// file, whatever has become of its path.
pub fn open_mapping(
    pid: u32,
    (start, end): (u64, u64),
    opening: &mut Opening<'_>,
) -> Result<File, Reason> {
    opening.watch.enter(Blocker::Process(pid))?;
    open_link(&format!("/proc/{pid}/map_files/{start:x}-{end:x}"), opening)
}

/// Opens the target of a kernel link.
pub fn open_link(path: &str, opening: &mut Opening<'_>) -> Result<File, Reason> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(|error| io_reason(&error.into()))?;
    reopen(file.as_fd(), opening)
}

impl Candidate {
    /// Opens the file at this place, if the rules of `opening` permit it.
    pub fn open(self, source: &FileSource<'_>, opening: &mut Opening<'_>) -> Result<File, Reason> {
        match self {
            Candidate::Given => {
                let file = source.file.ok_or(Reason::FileGone)?;
                reopen(file.as_fd(), opening)
            }
            Candidate::Mapping => {
                let of_process = source.pid.zip(source.range);
                let (pid, range) = of_process.ok_or(Reason::FileGone)?;
                open_mapping(pid, range, opening)
            }
            Candidate::Root => {
                let root = own_root(source).ok_or(Reason::FileGone)?;
                open_path(&root, source.path, opening)
            }
            Candidate::Host => open_path(&open_root("/")?, source.path, opening),
        }
    }
}

/// Opens the path as it is, then without the kernel's suffix: the real name of a file may end like
/// the suffix.
fn open_path(root: &OwnedFd, path: &Path, opening: &mut Opening<'_>) -> Result<File, Reason> {
    let root = root.as_fd();
    let literal = open_beneath(root, path, Links::Follow, opening);
    match (literal, without_mark(path)) {
        (Err(Reason::FileGone), Some(path)) => open_beneath(root, path, Links::Follow, opening),
        (result, _) => result,
    }
}

fn without_mark(path: &Path) -> Option<&Path> {
    let bytes = path.as_os_str().as_bytes().strip_suffix(DELETED)?;
    Some(Path::new(OsStr::from_bytes(bytes)))
}
