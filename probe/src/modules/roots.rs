//! The root directories of processes whose root differs from proftop's: in containers, in mount
//! namespaces, or after chroot.

use rustix::fs::{AtFlags, StatxFlags, statx};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use symbolize::{Files, opener};

/// Identifies a directory in a mount: a container may have the host's directories with others
/// mounted into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    /// Id of the mount, which is not used for another mount while the directory is open.
    mount: u64,
}

/// The open root directories. Each is opened once, for all files below it.
#[derive(Debug)]
pub struct Roots {
    ours: Option<Identity>,
    others: HashMap<Identity, Weak<OwnedFd>>,
}

impl Roots {
    /// Starts without roots. Looks up proftop's own.
    pub fn new() -> Self {
        Self {
            ours: opener::our_root().and_then(|root| identity(&root)),
            others: HashMap::new(),
        }
    }

    /// Returns the root of a process; `None` if the process has ended, its root may not be opened,
    /// or is the same as proftop's.
    pub fn of(&mut self, pid: u32, files: &Files) -> Option<Arc<OwnedFd>> {
        let root = files.root_of(pid).ok()?;
        let identity = identity(&root)?;
        if self.ours.is_none_or(|ours| ours == identity) {
            return None;
        }
        if let Some(known) = self.others.get(&identity).and_then(Weak::upgrade) {
            return Some(known);
        }
        self.others.retain(|_, root| root.strong_count() > 0);
        let root = Arc::new(root);
        self.others.insert(identity, Arc::downgrade(&root));
        Some(root)
    }
}

fn identity(root: &OwnedFd) -> Option<Identity> {
    let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
    // A server that it may be on is not contacted.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(root, "", flags, wanted).ok()?;
    Some(Identity {
        device: (status.stx_dev_major, status.stx_dev_minor),
        inode: status.stx_ino,
        // The field is 0 before Linux 5.8: then a mount namespace cannot be distinguished.
        mount: status.stx_mnt_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::process::{Child, Command, Stdio};

    struct Sleeper(Child);

    impl Sleeper {
        /// Runs `sleep` by this command; `None` if that is not allowed.
        fn start(command: &[&str]) -> Option<Self> {
            let mut child = Command::new(command[0])
                .args(&command[1..])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let mut said = [0; 3];
            let output = child.stdout.as_mut().expect("it has a pipe");
            let has_started = std::io::Read::read_exact(output, &mut said).is_ok();
            let sleeper = Self(child);
            has_started.then_some(sleeper)
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_with_our_root_has_none_of_its_own() {
        let (mut roots, files) = (Roots::new(), Files::default());
        assert!(roots.of(std::process::id(), &files).is_none());
        assert!(roots.of(u32::MAX, &files).is_none());
    }

    #[test]
    fn a_namespace_has_one_root_however_many_ask() {
        let command = ["unshare", "-m", "sh", "-c", "echo up; exec sleep 60"];
        let Some(sleeper) = Sleeper::start(&command) else {
            test_support::skip("no namespace of mounts can be made");
            return;
        };
        let (mut roots, files) = (Roots::new(), Files::default());
        let root = roots.of(sleeper.0.id(), &files).expect("another mount");
        let again = roots.of(sleeper.0.id(), &files).expect("it still lives");
        assert!(Arc::ptr_eq(&root, &again));
        let has_files = rustix::fs::openat(
            &*root,
            "proc",
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        );
        assert!(has_files.is_ok());
        drop((root, again));
        assert!(roots.others.values().all(|root| root.strong_count() == 0));
    }
}
