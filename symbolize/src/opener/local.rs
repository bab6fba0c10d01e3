//! The safe open: below a root, regular files only, local ones unless asked.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, open, openat2};

use super::RemoteFiles;
use crate::Reason;
use crate::error::io_reason;
use crate::source::FILE_BYTES_MAX;

/// Filesystems behind which someone else answers, or does not (linux/magic.h).
const REMOTE_FILESYSTEMS: [i64; 12] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE
    0x00c3_6400, // Ceph
    0x5346_414f, // AFS
    0x6b41_4653, // AFS in the kernel
    0x0102_1997, // 9P
    0x7375_7245, // Coda
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
];

/// Opens `path` for reading as a process with this root directory would, with
/// every symbolic link, absolute or with `..`, kept below the root.
pub fn open_beneath(root: impl AsFd, path: &Path, remote: RemoteFiles) -> Result<File, Reason> {
    open_inside(root, path, remote, OFlags::empty())
}

/// The same, but what is a symbolic link itself is refused.
pub fn open_file_beneath(
    root: impl AsFd,
    path: &Path,
    remote: RemoteFiles,
) -> Result<File, Reason> {
    open_inside(root, path, remote, OFlags::NOFOLLOW)
}

fn open_inside(
    root: impl AsFd,
    path: &Path,
    remote: RemoteFiles,
    links: OFlags,
) -> Result<File, Reason> {
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // Only a reference at first: opening a device or a pipe for real could
    // already do something.
    let flags = OFlags::PATH | OFlags::CLOEXEC | links;
    let file = openat2(root, path, flags, Mode::empty(), inside);
    // Among others ENOSYS, before Linux 5.6: there is no safe way then.
    reopen(file.map_err(|error| io_reason(&error.into()))?, remote)
}

/// Opens for reading what a descriptor refers to, if it is a regular file.
pub fn reopen(file: impl AsFd, remote: RemoteFiles) -> Result<File, Reason> {
    let failed = |error: rustix::io::Errno| io_reason(&error.into());
    let file = file.as_fd();
    let is_remote = || -> Result<bool, Reason> {
        let kind = fstatfs(file).map_err(failed)?.f_type;
        // The type is 32 bits wide; on some targets it is signed.
        Ok(REMOTE_FILESYSTEMS.contains(&((kind as i64) & 0xffff_ffff)))
    };
    if remote == RemoteFiles::Skip && is_remote()? {
        return Err(Reason::Remote);
    }
    let stat = fstat(file).map_err(failed)?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !regular || u64::try_from(stat.st_size).is_ok_and(|size| size > FILE_BYTES_MAX) {
        return Err(Reason::Refused);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(failed)
}
