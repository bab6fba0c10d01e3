//! Which file systems are served by another process or machine, from the kernel's lists. Querying
//! the file system itself could already block for ever.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

/// Types of file systems that are served by another process or machine. `fuse.sshfs` and similar
/// ones count as `fuse`.
const REMOTE: [&[u8]; 21] = [
    b"fuse",
    b"fuseblk",
    b"virtiofs",
    b"nfs",
    b"nfs4",
    b"cifs",
    b"smb3",
    b"smbfs",
    b"ncpfs",
    b"ceph",
    b"afs",
    b"9p",
    b"coda",
    b"lustre",
    b"gpfs",
    b"beegfs",
    b"orangefs",
    b"ocfs2",
    b"gfs2",
    b"autofs",
    b"acfs",
];

/// How long a list is considered current. Numbers of mounts and devices are reused.
const BELIEVED: Duration = Duration::from_secs(1);

/// Maximum size of a list: a hundred thousand mounts.
const BYTES_MAX: u64 = 16 << 20;

/// How a file system can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Not served by another process or machine, so reading it cannot block for ever.
    Local,
    /// /proc: served by the kernel itself, and its links lead anywhere.
    Proc,
    /// Served by another process or machine, which may never answer.
    Remote,
}

/// Major and minor number of a device.
pub type Device = (u32, u32);

/// The file systems of the mount namespaces that were read so far.
#[derive(Debug, Default)]
pub struct Mounts {
    by_mount: HashMap<u64, Kind>,
    by_device: HashMap<Device, Kind>,
    read: Option<Instant>,
}

impl Mounts {
    /// Returns the kind of a mount, by its number. `others` is the mount list of another namespace,
    /// read if the mount is not in ours.
    pub fn of_mount(&mut self, mount: u64, others: Option<&str>) -> Option<Kind> {
        self.find(others, |mounts| mounts.by_mount.get(&mount).copied())
    }

    /// Returns the kind of a file system, by the device that mappings of its files show.
    pub fn of_device(&mut self, device: Device, others: Option<&str>) -> Option<Kind> {
        self.find(others, |mounts| mounts.by_device.get(&device).copied())
    }

    /// Records the kind of a mount that is in no list and was queried itself.
    pub fn note(&mut self, mount: u64, kind: Kind) {
        self.by_mount.insert(mount, kind);
    }

    fn find(
        &mut self,
        others: Option<&str>,
        look: impl Fn(&Mounts) -> Option<Kind>,
    ) -> Option<Kind> {
        if self.read.is_none_or(|read| read.elapsed() > BELIEVED) {
            self.by_mount.clear();
            self.by_device.clear();
            self.read = Some(Instant::now());
            self.add(&list("/proc/self/mountinfo"));
        }
        if let Some(kind) = look(self) {
            return Some(kind);
        }
        self.add(&list(others?));
        look(self)
    }

    /// Adds the file systems of a list in the format of `/proc/PID/mountinfo`.
    pub fn add(&mut self, list: &[u8]) {
        let lines: Vec<Line<'_>> = list.split(|byte| *byte == b'\n').filter_map(line).collect();
        let places = Places::of(&lines);
        for line in &lines {
            let kind = line.kind(&places);
            // A file system may be mounted in many places.
            self.by_device.entry(line.device).or_insert(kind);
            self.by_mount.insert(line.mount, kind);
        }
    }
}

/// Reads a list; empty if that fails: unknown mounts are handled as possibly remote.
fn list(path: &str) -> Vec<u8> {
    let mut text = Vec::new();
    _ = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut text));
    text
}

/// A line of `/proc/PID/mountinfo`, see proc_pid_mountinfo(5).
#[derive(Debug)]
struct Line<'a> {
    mount: u64,
    device: Device,
    place: &'a [u8],
    kind: &'a [u8],
    options: &'a [u8],
}

fn line(line: &[u8]) -> Option<Line<'_>> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok();
    let mount = number()?.parse().ok()?;
    number()?;
    let (major, minor) = number()?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let place = fields.nth(1)?;
    // Options, then any number of fields up to a dash.
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = fields.next()?;
    let options = fields.nth(1).unwrap_or_default();
    Some(Line {
        mount,
        device,
        place,
        kind,
        options,
    })
}

impl Line<'_> {
    fn kind(&self, places: &Places<'_>) -> Kind {
        match self.kind {
            b"proc" => Kind::Proc,
            // The files of an overlay are those of its layers.
            b"overlay" if self.layers().any(|layer| places.are_remote(layer)) => Kind::Remote,
            kind if is_remote_type(kind) => Kind::Remote,
            _ => Kind::Local,
        }
    }

    fn layers(&self) -> impl Iterator<Item = &[u8]> {
        let options = self.options.split(|byte| *byte == b',');
        let layers = options.filter_map(|option| {
            let names: [&[u8]; 3] = [b"lowerdir=", b"lowerdir+=", b"upperdir="];
            names.iter().find_map(|name| option.strip_prefix(*name))
        });
        layers.flat_map(|layers| layers.split(|byte| *byte == b':'))
    }
}

fn is_remote_type(kind: &[u8]) -> bool {
    let family = kind.split(|byte| *byte == b'.').next().unwrap_or(kind);
    REMOTE.contains(&family)
}

/// The mount points, and whether each is remote. Later lines cover earlier ones.
///
/// A user who may mount can have a hundred thousand mounts, with hundreds of layers each; so a path
/// is not compared with every mount point.
struct Places<'a>(HashMap<&'a [u8], bool>);

impl<'a> Places<'a> {
    /// Maximum number of directories above a path that are looked up. Deeper paths count as remote.
    const DEPTH_MAX: usize = 128;

    fn of(lines: &[Line<'a>]) -> Self {
        let places = lines.iter();
        Places(
            places
                .map(|line| (line.place, is_remote_type(line.kind)))
                .collect(),
        )
    }

    /// Whether a path is in a remote mount, by the innermost mount point that contains it.
    fn are_remote(&self, path: &[u8]) -> bool {
        let mut folder = path;
        for _ in 0..Self::DEPTH_MAX {
            if let Some(is_remote) = self.0.get(folder) {
                return *is_remote;
            }
            folder = match folder.iter().rposition(|byte| *byte == b'/') {
                Some(end) if end > 0 => &folder[..end],
                // A relative path is below the root as well.
                _ => return self.0.get(&b"/"[..]).copied().unwrap_or(false),
            };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:39 / /mnt/dead rw,nosuid shared:7 master:2 - fuse.sshfs host:/ rw,user_id=0
31 22 0:40 / /data\\040x rw - nfs4 server:/x rw,vers=4.2
32 22 0:41 / /merged rw - overlay overlay rw,lowerdir=/lower:/mnt/dead/layer,upperdir=/u,workdir=/w
33 22 0:42 / /fine rw - overlay overlay rw,lowerdir=/mnt/deadly,upperdir=/u,workdir=/w
34 22 254:1 /x /bound rw - ext4 /dev/vda1 rw
nonsense
";

    #[test]
    fn kinds_are_told_by_device_and_by_mount() {
        let mut mounts = Mounts::default();
        mounts.add(LIST.as_bytes());
        for (mount, device, expected) in [
            (22, (254, 1), Kind::Local),
            (23, (0, 21), Kind::Proc),
            (30, (0, 39), Kind::Remote),
            (31, (0, 40), Kind::Remote),
            (32, (0, 41), Kind::Remote),
            (33, (0, 42), Kind::Local),
            (34, (254, 1), Kind::Local),
        ] {
            assert_eq!(mounts.by_mount.get(&mount), Some(&expected), "{mount}");
            assert_eq!(mounts.by_device.get(&device), Some(&expected), "{mount}");
        }
        assert_eq!(mounts.by_mount.len(), 7);
    }

    #[test]
    fn the_innermost_and_latest_place_counts() {
        let list = "\
1 0 0:1 / / rw - nfs4 s rw
2 1 0:2 / /near rw - ext4 x rw
3 1 0:3 / /near/over rw - ext4 x rw
4 3 0:4 / /near/over rw - fuse x rw
";
        let lines: Vec<_> = list.as_bytes().split(|byte| *byte == b'\n').collect();
        let lines: Vec<_> = lines.into_iter().filter_map(line).collect();
        let places = Places::of(&lines);
        for (path, is_remote) in [
            ("/", true),
            ("/nearby", true),
            ("/near", false),
            ("/near/layer", false),
            ("/near/over/layer", true),
            ("layer", true),
            ("", true),
        ] {
            assert_eq!(places.are_remote(path.as_bytes()), is_remote, "{path}");
        }
        let deep = "/near".to_owned() + &"/x".repeat(Places::DEPTH_MAX);
        assert!(places.are_remote(deep.as_bytes()));
    }

    proptest::proptest! {
        #[test]
        fn any_list_is_harmless(list in "[0-9]{1,3} 1 0:[0-9] / [/a ]{1,5} rw - (overlay|nfs) x ([a-z=:,/+]{0,20}|lowerdir=:)\n?.*") {
            Mounts::default().add(list.as_bytes());
        }
    }

    #[test]
    fn this_systems_proc_is_found() {
        let mut mounts = Mounts::default();
        let proc = rustix::fs::stat("/proc").unwrap().st_dev;
        let device = (rustix::fs::major(proc), rustix::fs::minor(proc));
        assert_eq!(mounts.of_device(device, None), Some(Kind::Proc));
        assert_eq!(
            mounts.of_mount(u64::MAX, Some("/proc/self/mountinfo")),
            None
        );
    }
}
