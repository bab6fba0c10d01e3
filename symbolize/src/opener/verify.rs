//! Checks whether the opened file is the mapped one.

use std::fs::File;

use rustix::fs::{fstat, fstatfs, major, minor};

use super::candidates::Candidate;
use super::{FileIdentity, FileSource};
use crate::error::io_reason;
use crate::object::Object;
use crate::{BuildId, Reason};

/// Filesystems on which stat returns another device number than `/proc/PID/maps`: each subvolume,
/// or layer, has its own.
const OWN_DEVICE_NUMBERS: [i64; 3] = [
    OVERLAYFS,
    0x9123_683e, // btrfs
    0xca45_1a4e, // bcachefs
];

const OVERLAYFS: i64 = 0x794c_7630;

/// Returns an error unless the opened file is the one that `source` describes.
pub fn same_file(file: &File, source: &FileSource<'_>, candidate: Candidate) -> Result<(), Reason> {
    let is_known = candidate == Candidate::Given;
    let same = match (source.build_id, source.inode) {
        (Some(wanted), _) => has_build_id(file, wanted) && is_trusted(file, source, candidate)?,
        (None, 0) => candidate != Candidate::Host,
        (None, _) => is_known || has_inode(file, source, candidate)?,
    };
    same.then_some(()).ok_or(Reason::ChangedOnDisk)
}

/// Whether a file with the right build-id may be accepted as the mapped one.
fn is_trusted(file: &File, source: &FileSource<'_>, candidate: Candidate) -> Result<bool, Reason> {
    let Some(mapped) = source.identity else {
        // The mapped file was never seen: for a recording, the build-id is all there is.
        return Ok(true);
    };
    if candidate == Candidate::Given {
        return Ok(true);
    }
    let found = FileIdentity::of(file).map_err(|error| io_reason(&error))?;
    Ok(mapped.trusts_build_id_of(&found)
        || source.inode != 0 && has_inode(file, source, candidate)?)
}

fn has_build_id(file: &File, wanted: &[u8]) -> bool {
    let id = Object::read(file).ok().and_then(|object| object.build_id());
    id.is_some_and(|id| BuildId::new(&id).is_reported_as(wanted))
}

/// Compares device and inode. Even a link in map_files is checked: another file may have been
/// mapped at the same addresses since.
fn has_inode(file: &File, source: &FileSource<'_>, candidate: Candidate) -> Result<bool, Reason> {
    let failed = |error: rustix::io::Errno| io_reason(&error.into());
    let stat = fstat(file).map_err(failed)?;
    let kind = fstatfs(file).map_err(failed)?.f_type as i64 & 0xffff_ffff;
    let device = (major(stat.st_dev), minor(stat.st_dev));
    let same_device = device == source.device || OWN_DEVICE_NUMBERS.contains(&kind);
    let same_inode = stat.st_ino == source.inode;
    // Before Linux 6.8 a mapping on overlayfs shows the inode of the lower layer, which cannot be
    // determined by opening the file.
    let unknowable = candidate == Candidate::Mapping && kind == OVERLAYFS;
    Ok(same_device && (same_inode || unknowable))
}
