//! *User rights*: file accesses for the invoking user are done with that user's rights, whatever
//! those of this process are. A path that the user names, or a link that somebody has placed there,
//! then gives no access that the user does not have.
//!
//! ```text
//! we are                        with whose rights
//! root, called by a user        that user's, no capabilities
//! root otherwise                our own
//! not root, with capabilities   our own, no capabilities (a binary with file capabilities)
//! not root                      our own
//! ```

use super::InvokingUser;
use crate::open_files;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Whether this process has become the invoking user for good.
static HAS_BECOME_USER: AtomicBool = AtomicBool::new(false);

/// The rights for accessing files of the invoking user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRights {
    /// The user whose rights are used; `None` if this process runs as that user.
    user: Option<InvokingUser>,
    drops_capabilities: bool,
}

impl UserRights {
    /// Returns the rights, which are determined once: neither the rights of this process nor its
    /// caller changes.
    pub fn current() -> &'static UserRights {
        static CURRENT: OnceLock<UserRights> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let is_root = rustix::process::geteuid().is_root();
            UserRights {
                user: InvokingUser::current(),
                drops_capabilities: !is_root && has_capabilities(),
            }
        })
    }

    /// Returns the rights of this process.
    pub fn own() -> UserRights {
        UserRights {
            user: None,
            drops_capabilities: false,
        }
    }

    /// Returns the rights of `user`; only root can take them on.
    pub fn of(user: InvokingUser) -> UserRights {
        UserRights {
            user: Some(user),
            drops_capabilities: true,
        }
    }

    /// Returns the user whose rights are taken on; `None` if this process runs as that user.
    pub fn user(&self) -> Option<&InvokingUser> {
        self.user.as_ref()
    }

    /// Becomes the user for good, without any capability. Must be called while there is one thread;
    /// later ones inherit it. Returns whether this process was somebody else before.
    pub(crate) fn become_user(&self) -> io::Result<bool> {
        let Some(user) = &self.user else {
            return Ok(false);
        };
        Identity::of(user).take_on()?;
        drop_capabilities()?;
        HAS_BECOME_USER.store(true, Ordering::Relaxed);
        // The kernel has given the files of this process in /proc to root, so that the user cannot
        // look into a process that has more rights. Now it has none.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
        Ok(true)
    }

    /// Whether these are the rights that this process has anyway.
    fn are_own(&self) -> bool {
        let is_somebody_else = self.user.is_some() && !HAS_BECOME_USER.load(Ordering::Relaxed);
        !is_somebody_else && !self.drops_capabilities
    }

    /// Does file work with these rights, on a thread of its own that ends with it.
    ///
    /// The thread keeps root as its real and saved user, and has no capabilities. The kernel checks
    /// the effective user for everything that concerns files, and the other two before a process
    /// may be traced or sent a signal: so the user cannot access the memory of this process through
    /// this thread. `setfsuid` would not be enough: files below `/proc/sys` check the effective
    /// user.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if self.are_own() {
            return work();
        }
        let work = move || {
            self.take_on_for_files()?;
            work()
        };
        let work = move || faults::catch("reading or writing files of the user", work);
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("user files".into());
            let worker = builder.spawn_scoped(scope, work)?;
            // The caller reports the error, as for any other file error.
            let failed = |what: String| Err(io::Error::other(what));
            match worker.join() {
                Ok(done) => done.unwrap_or_else(|fault| failed(fault.to_string())),
                Err(_) => failed("the thread with the user's rights panicked".into()),
            }
        })
    }

    /// Takes the rights on for the calling thread, which cannot give them back: as in
    /// [`run`](Self::run).
    pub(crate) fn take_on_for_files(&self) -> io::Result<()> {
        if self.are_own() {
            return Ok(());
        }
        if let Some(user) = &self.user {
            Identity::of(user).take_on_for_files()?;
        }
        if self.user.is_some() || self.drops_capabilities {
            drop_capabilities()?;
        }
        Ok(())
    }

    /// Makes a command run as the user: its ids, its groups, its home, and the limit of open files
    /// that this process began with.
    pub fn apply_to(&self, command: &mut Command) {
        open_files::give_back_limit(command);
        let Some(user) = &self.user else { return };
        command.env("HOME", &user.home);
        command.env("USER", &user.name).env("LOGNAME", &user.name);
        if self.are_own() {
            return;
        }
        let identity = Identity::of(user);
        // SAFETY: the closure runs between fork and exec, where other threads'
        // locks may be held for ever. It makes system calls only: it allocates
        // nothing, and takes no lock.
        unsafe { command.pre_exec(move || identity.take_on()) };
    }
}

/// The numbers of a user, looked up before they are needed.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Identity {
    pub(crate) fn of(user: &InvokingUser) -> Identity {
        Identity {
            uid: Uid::from_raw(user.uid),
            gid: Gid::from_raw(user.gid),
            groups: user.groups.iter().copied().map(Gid::from_raw).collect(),
        }
    }

    /// Permanently becomes the user, for the calling thread alone. The user is changed last, since
    /// that removes the right to change the others. Makes system calls only.
    pub(crate) fn take_on(&self) -> io::Result<()> {
        self.take_on_groups()?;
        rustix::thread::set_thread_res_uid(self.uid, self.uid, self.uid)?;
        Ok(())
    }

    /// Changes only the effective user, and with it the one for file access.
    fn take_on_for_files(&self) -> io::Result<()> {
        self.take_on_groups()?;
        rustix::thread::set_thread_res_uid(None, self.uid, None)?;
        Ok(())
    }

    fn take_on_groups(&self) -> io::Result<()> {
        rustix::thread::set_thread_groups(&self.groups)?;
        rustix::thread::set_thread_res_gid(self.gid, self.gid, self.gid)?;
        Ok(())
    }
}

/// Drops the capabilities of the calling thread. Another user has none anyway, unless secure bits
/// keep them.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, none)?)
}

fn has_capabilities() -> bool {
    // If they cannot be read, they are dropped, which does no harm.
    rustix::thread::capabilities(None).map_or(true, |sets| !sets.permitted.is_empty())
}

#[cfg(test)]
mod tests;
