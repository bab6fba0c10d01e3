//! Who can change a file. They decide about all of its contents, including its build-id.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::process::geteuid;

const GROUP_CAN_WRITE: u32 = 0o020;
const OTHERS_CAN_WRITE: u32 = 0o002;

/// The user who can write to every file.
const ROOT: u32 = 0;

/// The users who can write to a file, according to its owner and mode. Root always can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Writers {
    owner: u32,
    /// The group, if it can write. If a file has an access control list, its mode says that the
    /// group can write if anyone in the list can.
    group: Option<u32>,
    anybody: bool,
}

impl Writers {
    /// Returns the users who can write to a file. The owners that a file system names were written
    /// by the user who made it: if the kernel does not trust them (`nosuid`), they are not trusted
    /// here.
    pub fn of(file: &File) -> io::Result<Writers> {
        let mode = Writers::by_mode(&file.metadata()?);
        let mount = fstatvfs(file)?.f_flag;
        Ok(Writers {
            anybody: mode.anybody || mount.contains(StatVfsMountFlags::NOSUID),
            ..mode
        })
    }

    /// The writers of a file for which they cannot be determined.
    pub const UNKNOWN: Writers = Writers {
        owner: u32::MAX,
        group: None,
        anybody: true,
    };

    /// Returns the writers of a file at a place that is ours, wherever it is mounted.
    pub fn by_mode(metadata: &Metadata) -> Writers {
        let mode = metadata.mode();
        Writers {
            owner: metadata.uid(),
            group: (mode & GROUP_CAN_WRITE != 0).then(|| metadata.gid()),
            anybody: mode & OTHERS_CAN_WRITE != 0,
        }
    }

    /// Encodes the writers for another process of this program.
    pub fn to_words(&self) -> [u64; 2] {
        let group = self.group.unwrap_or_default();
        let flags = u64::from(self.group.is_some()) | u64::from(self.anybody) << 1;
        [u64::from(self.owner) << 32 | u64::from(group), flags]
    }

    /// Decodes the result of [`Writers::to_words`].
    pub fn from_words([users, flags]: [u64; 2]) -> Writers {
        Writers {
            owner: (users >> 32) as u32,
            group: (flags & 1 != 0).then_some(users as u32),
            anybody: flags & 2 != 0,
        }
    }

    /// The only user who can write, besides root; `None` if there are several.
    pub fn only(&self) -> Option<u32> {
        (self.group.is_none() && !self.anybody).then_some(self.owner)
    }

    /// Whether only root and the user that we run as can write.
    pub fn are_root_or_us(&self) -> bool {
        self.only()
            .is_some_and(|owner| owner == ROOT || owner == geteuid().as_raw())
    }

    /// Whether each of them is root, or us, or could also write to a file with the writers `those`:
    /// then what such a file says about that one is as trustworthy as that one itself.
    pub fn are_trusted_by(&self, those: &Writers) -> bool {
        let same_owner = self.owner == those.owner;
        let group_can = |group| those.group == Some(group);
        self.are_root_or_us()
            || those.anybody
            || same_owner && !self.anybody && self.group.is_none_or(group_can)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const fn only(owner: u32) -> Writers {
        Writers {
            owner,
            group: None,
            anybody: false,
        }
    }

    #[test]
    fn a_mode_tells_who_can() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let us = geteuid().as_raw();
        let with_mode = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), rights).unwrap();
            Writers::by_mode(&file.as_file().metadata().unwrap())
        };
        assert_eq!(with_mode(0o755).only(), Some(us));
        assert_eq!(with_mode(0o400).only(), Some(us));
        assert_eq!(with_mode(0o775).only(), None);
        assert_eq!(with_mode(0o757).only(), None);
        assert!(with_mode(0o755).are_root_or_us());
    }

    #[test]
    fn no_owner_is_believed_where_the_kernel_believes_none() {
        // A file system of the kernel, which is mounted `nosuid` everywhere.
        let Ok(file) = File::open("/proc/self/maps") else {
            return;
        };
        let flags = fstatvfs(&file).unwrap().f_flag;
        let is_nosuid = flags.contains(StatVfsMountFlags::NOSUID);
        assert_eq!(Writers::of(&file).unwrap().only().is_none(), is_nosuid);
    }

    #[test]
    fn what_is_said_of_a_file_by_those_who_can_write_to_it_is_believed() {
        let (anna, ben) = (only(60_001), only(60_002));
        let team = |owner, group| Writers {
            owner,
            group: Some(group),
            anybody: false,
        };
        let anybody = Writers {
            anybody: true,
            ..anna
        };
        for (says, of, expected) in [
            (only(ROOT), anna, true),
            (only(geteuid().as_raw()), anna, true),
            (anna, anna, true),
            (ben, anna, false),
            (anna, only(ROOT), geteuid().as_raw() == 60_001),
            (anybody, anna, false),
            (ben, anybody, true),
            (team(60_001, 7), anna, false),
            (team(60_001, 7), team(60_001, 7), true),
            (team(60_001, 7), team(60_001, 8), false),
            (anna, team(60_001, 7), true),
        ] {
            assert_eq!(says.are_trusted_by(&of), expected, "{says:?} of {of:?}");
        }
    }
}
