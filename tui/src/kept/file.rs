//! The file `proftop/state.toml` below `$XDG_STATE_HOME` or `~/.local/state`.
//! Under sudo it is that of the user who called it, and it is written with that
//! user's rights and no others: nothing in that home can lead root elsewhere.

use crate::config::Place;
use probe::privilege::InvokingUser;
use rustix::process::{Gid, Uid};
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;

#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    /// Who called sudo.
    user: Option<InvokingUser>,
}

impl StateFile {
    /// Nothing for those without a home.
    pub fn find() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::of(InvokingUser::under_sudo(), variable)
    }

    fn of(user: Option<InvokingUser>, variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let folder = match &user {
            // Their environment is not ours.
            Some(user) => Some(user.home.join(".local/state")),
            None => variable("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(absolute)
                .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state"))),
        };
        let folder = folder.filter(absolute)?;
        Some(StateFile {
            path: folder.join("proftop/state.toml"),
            user,
        })
    }

    /// Nothing if there is none, or none to be trusted.
    pub fn read(&self) -> Option<String> {
        let owner = self.user.as_ref().map(|user| user.uid);
        Place::new(self.path.clone(), owner).read().ok()?
    }

    pub fn write(&self, text: String) -> io::Result<()> {
        let path = self.path.clone();
        let Some(user) = self.user.clone() else {
            return write(&path, &text);
        };
        // A thread has its own rights, and ends with them.
        let writer = thread::Builder::new().name("state".into()).spawn(move || {
            become_user(&user)?;
            write(&path, &text)
        })?;
        writer
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

/// Of the calling thread alone.
fn become_user(user: &InvokingUser) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    rustix::thread::set_thread_groups(&groups)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// The whole of it, or nothing.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let new = folder.join(format!(".state.toml.{}", std::process::id()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    fn ann(home: &Path) -> InvokingUser {
        InvokingUser {
            uid: 65_534,
            gid: 65_534,
            groups: vec![65_534],
            name: "ann".into(),
            home: home.to_owned(),
        }
    }

    fn path(user: Option<InvokingUser>, variables: &[(&str, &str)]) -> Option<PathBuf> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        StateFile::of(user, lookup).map(|file| file.path)
    }

    #[test]
    fn it_is_where_state_belongs() {
        let home = ("HOME", "/home/ann");
        let own: PathBuf = "/home/ann/.local/state/proftop/state.toml".into();
        assert_eq!(path(None, &[home]), Some(own.clone()));
        assert_eq!(
            path(None, &[home, ("XDG_STATE_HOME", "/s")]),
            Some("/s/proftop/state.toml".into())
        );
        assert_eq!(
            path(None, &[home, ("XDG_STATE_HOME", "s")]),
            Some(own.clone())
        );
        assert_eq!(path(None, &[]), None);
        let sudo = ann(Path::new("/home/ann"));
        assert_eq!(
            path(Some(sudo), &[("HOME", "/root"), ("XDG_STATE_HOME", "/s")]),
            Some(own)
        );
    }

    #[test]
    fn it_is_written_whole_and_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = StateFile {
            path: folder.path().join("deep/er/state.toml"),
            user: None,
        };
        assert_eq!(file.read(), None);
        file.write("a = 1".into()).expect("it can be written");
        file.write("a = 2".into()).expect("again");
        assert_eq!(file.read(), Some("a = 2".into()));
        let parent = file.path.parent().expect("a folder");
        assert_eq!(fs::read_dir(parent).expect("it is there").count(), 1);
        assert_eq!(
            fs::metadata(&file.path).expect("it is there").mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_folder_that_takes_nothing_is_no_failure_but_an_error() {
        let file = StateFile {
            path: "/proc/nothing/state.toml".into(),
            user: None,
        };
        assert!(file.write(String::new()).is_err());
    }

    #[test]
    fn under_sudo_it_is_written_with_the_users_rights() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can be another user");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (home, roots) = (folder.path().join("ann"), folder.path().join("root"));
        for path in [&home, &roots] {
            fs::create_dir(path).expect("a folder");
        }
        // The folder above has to let them through.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("ours");
        std::os::unix::fs::chown(&home, Some(65_534), Some(65_534)).expect("root may");
        let file = StateFile::of(Some(ann(&home)), |_| None).expect("a home");
        file.write("a = 1".into()).expect("it is theirs");
        assert_eq!(fs::metadata(&file.path).expect("it is there").uid(), 65_534);
        assert_eq!(file.read(), Some("a = 1".into()));
        // This thread is still root.
        assert!(rustix::process::geteuid().is_root());
        assert!(fs::write(roots.join("still"), "root").is_ok());

        // What leads elsewhere leads nowhere.
        let state = home.join(".local/state/proftop");
        fs::remove_dir_all(&state).expect("ours");
        std::os::unix::fs::symlink(&roots, &state).expect("a link");
        assert!(file.write("a = 2".into()).is_err());
        assert!(!roots.join("state.toml").exists());
        // Nor is what somebody else left there believed.
        fs::write(roots.join("state.toml"), "a = 3").expect("root may");
        assert_eq!(file.read(), None);
    }
}
