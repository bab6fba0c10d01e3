//! What is allowed, and what is known, while a file is opened.

use std::fs;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, StatxFlags, fstatfs, statx};

use super::RemoteFiles;
use super::mounts::{Device, Kind, Mounts};
use super::watch::{Blocker, Watch};
use crate::Reason;
use crate::error::io_reason;

/// Magic numbers (linux/magic.h) of remote file systems, for mounts that are in no list.
const REMOTE: [i64; 13] = [
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
    0x0187,      // autofs
];

const PROC: i64 = 0x9fa0;

/// The permissions and caches of one request for files.
pub struct Opening<'a> {
    /// Whether file servers may be contacted.
    pub remote: RemoteFiles,
    /// Which mounts are served by file servers, as far as known.
    pub mounts: &'a mut Mounts,
    /// Called before each step that may block.
    pub watch: &'a mut dyn Watch,
    /// The mount list of the process whose files are opened, if known.
    pub mountinfo: Option<String>,
}

/// Properties of a file that are known without contacting its server.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub kind: FileType,
    /// Size in bytes.
    pub len: u64,
    /// Number of the mount that it is on.
    pub mount: u64,
    device: Device,
}

impl Opening<'_> {
    /// Interprets paths in the mount namespace of the process with this directory in /proc.
    pub fn see_mounts_of(&mut self, process: &str) {
        self.mountinfo = Some(format!("{process}/mountinfo"));
    }

    /// Whether a mapping's device shows that its file may not be opened.
    pub fn is_refused(&mut self, device: Device) -> bool {
        let others = self.mountinfo.as_deref();
        self.remote == RemoteFiles::Skip
            && device != (0, 0)
            && self.mounts.of_device(device, others) == Some(Kind::Remote)
    }

    /// Returns the kind of file system of a file that was opened as a mere reference. A file system
    /// that is in no list has to be queried itself.
    pub fn kind_of(&mut self, file: BorrowedFd<'_>, seen: &Seen) -> Result<Kind, Reason> {
        let others = self.mountinfo.as_deref();
        let listed = self.mounts.of_mount(seen.mount, others);
        // The mount list of another namespace may be inaccessible; what is mounted there may also
        // be mounted in ours.
        let listed = listed.or_else(|| self.mounts.of_device(seen.device, None));
        if listed == Some(Kind::Remote) && self.remote == RemoteFiles::Open {
            self.watch
                .enter(Blocker::FileSystem(seen.device.0, seen.device.1))?;
        }
        if let Some(kind) = listed {
            return Ok(kind);
        }
        self.watch
            .enter(Blocker::FileSystem(seen.device.0, seen.device.1))?;
        let magic = fstatfs(file)
            .map_err(|error| io_reason(&error.into()))?
            .f_type;
        // The type is 32 bits wide; on some targets it is signed.
        let kind = match (magic as i64) & 0xffff_ffff {
            PROC => Kind::Proc,
            magic if REMOTE.contains(&magic) => Kind::Remote,
            _ => Kind::Local,
        };
        self.mounts.note(seen.mount, kind);
        Ok(kind)
    }
}

impl Seen {
    /// Reads the properties that the kernel has cached, without contacting a server.
    pub fn of(file: impl AsFd) -> Result<Seen, Reason> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::MNT_ID;
        let seen = statx(&file, "", flags, wanted).map_err(|error| io_reason(&error.into()))?;
        let has_mount = seen.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Ok(Seen {
            kind: FileType::from_raw_mode(seen.stx_mode.into()),
            len: seen.stx_size,
            // Before Linux 5.8 only /proc has the mount number.
            mount: if has_mount {
                seen.stx_mnt_id
            } else {
                mount_of(file.as_fd()).ok_or(Reason::FileGone)?
            },
            device: (seen.stx_dev_major, seen.stx_dev_minor),
        })
    }
}

fn mount_of(file: BorrowedFd<'_>) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let mount = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    mount.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_tell_the_same_mount() {
        let file = fs::File::open("/proc/self/status").unwrap();
        let seen = Seen::of(&file).unwrap();
        assert_eq!(Some(seen.mount), mount_of(file.as_fd()));
        assert_eq!(seen.kind, FileType::RegularFile);
    }
}
