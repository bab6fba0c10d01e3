//! What is known, and allowed, while a file is opened.

use std::fs;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, StatxFlags, fstatfs, statx};

use super::RemoteFiles;
use super::mounts::{Device, Kind, Mounts};
use super::watch::{Blocker, Watch};
use crate::Reason;
use crate::error::io_reason;

/// File systems of mounts that no list has, by their magic numbers (linux/magic.h).
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

/// One request for files: what it may touch, and what it knows.
pub struct Opening<'a> {
    /// Whether file servers may be asked.
    pub remote: RemoteFiles,
    /// Which mounts are of file servers, as far as that was found out.
    pub mounts: &'a mut Mounts,
    /// Told of each step that may wait.
    pub watch: &'a mut dyn Watch,
    /// The list of mounts of the process whose files they are, if it is known.
    pub mountinfo: Option<String>,
}

/// What is known of a file without asking who serves it.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub kind: FileType,
    pub len: u64,
    pub mount: u64,
    device: Device,
}

impl Opening<'_> {
    /// Paths are those of the process with this directory in /proc.
    pub fn see_mounts_of(&mut self, process: &str) {
        self.mountinfo = Some(format!("{process}/mountinfo"));
    }

    /// Whether a mapping shows the device of files that are not to be touched.
    pub fn is_refused(&mut self, device: Device) -> bool {
        let others = self.mountinfo.as_deref();
        self.remote == RemoteFiles::Skip
            && device != (0, 0)
            && self.mounts.of_device(device, others) == Some(Kind::Remote)
    }

    /// What kind of file system a file is of that was opened as a mere reference. One that
    /// is not listed anywhere has to be asked itself.
    pub fn kind_of(&mut self, file: BorrowedFd<'_>, seen: &Seen) -> Result<Kind, Reason> {
        let others = self.mountinfo.as_deref();
        let listed = self.mounts.of_mount(seen.mount, others);
        // Of another namespace's mounts the list may be out of reach; what is mounted there
        // may be in ours as well.
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
    /// By what the kernel remembers: a server is not asked.
    pub fn of(file: impl AsFd) -> Result<Seen, Reason> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::MNT_ID;
        let seen = statx(&file, "", flags, wanted).map_err(|error| io_reason(&error.into()))?;
        let has_mount = seen.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Ok(Seen {
            kind: FileType::from_raw_mode(seen.stx_mode.into()),
            len: seen.stx_size,
            // Before Linux 5.8 only /proc tells.
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
