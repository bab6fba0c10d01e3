//! Whose a process is: its control group and its user, as `/proc` tells them
//! when the process is first sampled, and after exec.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use symbolize::sanitize;

/// A line a hierarchy, each with a path: far less than this.
const CGROUP_BYTES_MAX: u64 = 64 << 10;

/// What is not known is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// The path in the hierarchy of version 2, else in that of systemd.
    pub cgroup: Option<Arc<str>>,
    pub uid: Option<u32>,
    /// Who started it: whatever it becomes, what it takes is counted as theirs.
    pub real_uid: Option<u32>,
}

impl Owner {
    /// Of a process that is there; what cannot be read stays as it was.
    pub fn update(&mut self, pid: u32) {
        let mut text = Vec::new();
        let file = File::open(format!("/proc/{pid}/cgroup"));
        let read = file.and_then(|file| file.take(CGROUP_BYTES_MAX).read_to_end(&mut text));
        if read.is_ok()
            && let Some(path) = cgroup(&text)
        {
            self.cgroup = Some(sanitize(path).into());
        }
        // It belongs to who the process runs as, or to root if the process may
        // not be looked into, as after setuid.
        if let Ok(folder) = fs::metadata(format!("/proc/{pid}")) {
            self.uid = Some(folder.uid());
        }
        self.real_uid = real_uid(pid).or(self.real_uid);
    }
}

/// The first of `Uid: real effective saved file-system`, as our user namespace has
/// them.
pub fn real_uid(pid: u32) -> Option<u32> {
    // A name may be any bytes.
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_whitespace().next()?.parse().ok()
}

/// `0::/system.slice/nginx.service`, or a line of systemd's own hierarchy.
fn cgroup(text: &[u8]) -> Option<&[u8]> {
    let of = |wanted: &[u8]| {
        let lines = text.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| {
                let mut fields = line.splitn(3, |byte| *byte == b':');
                let (_, kind, path) = (fields.next()?, fields.next()?, fields.next()?);
                (kind == wanted && !path.is_empty()).then_some(path)
            })
            .next()
    };
    // On hybrid systems that of version 2 is there, and empty of meaning.
    let path = of(b"").filter(|path| *path != b"/");
    path.or_else(|| of(b"name=systemd")).or_else(|| of(b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_means_something_is_taken() {
        let path =
            |text: &str| cgroup(text.as_bytes()).map(|p| String::from_utf8(p.to_vec()).unwrap());
        assert_eq!(path("0::/a/b:c\n").as_deref(), Some("/a/b:c"));
        let hybrid = "4:pids:/x\n1:name=systemd:/user.slice\n0::/\n";
        assert_eq!(path(hybrid).as_deref(), Some("/user.slice"));
        assert_eq!(path("0::/\n").as_deref(), Some("/"));
        assert_eq!(path("nothing"), None);
    }

    #[test]
    fn this_process_has_an_owner_and_a_dead_one_keeps_what_was_known() {
        let mut owner = Owner::default();
        owner.update(std::process::id());
        assert_eq!(owner.uid, Some(rustix::process::geteuid().as_raw()));
        let before = owner.clone();
        owner.update(u32::MAX);
        assert_eq!(owner, before);
    }
}
