//! The file `proftop/state.toml` below `$XDG_STATE_HOME` or `~/.local/state`. Under sudo it is
//! below the home of the user who called it.

use crate::user_files::{Manner, Refusal, UserFiles};
use probe::privilege::UserRights;
use std::ffi::OsString;
use std::path::PathBuf;

/// Maximum size of a file that is read, in bytes. We never write a larger one.
pub(super) const BYTES_MAX: u64 = 256 << 10;
/// Only the user may see which programs were profiled.
const FOLDER_MODE: u32 = 0o700;
const FILE: Manner = Manner {
    replaces: true,
    mode: 0o600,
};

/// The file, and the rights of its user.
#[derive(Debug)]
pub struct StateFile<'a> {
    path: PathBuf,
    files: UserFiles<'a>,
}

impl StateFile<'static> {
    /// Returns the file of the current user, or `None` if there is no home directory.
    pub fn find() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::of(UserRights::current(), variable)
    }
}

impl<'a> StateFile<'a> {
    fn of(rights: &'a UserRights, variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let folder = match rights.user() {
            // sudo has replaced the user's environment.
            Some(user) => Some(user.home.join(".local/state")),
            None => variable("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(absolute)
                .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state"))),
        };
        let folder = folder.filter(absolute)?;
        Some(StateFile {
            path: folder.join("proftop/state.toml"),
            files: UserFiles::of(rights),
        })
    }

    /// Reads the file. Returns `None` if it does not exist or cannot be read.
    pub fn read(&self) -> Option<String> {
        self.files.read(&self.path, BYTES_MAX).ok()
    }

    /// Writes the file, and creates its folder if that is missing.
    pub fn write(&self, text: &str) -> Result<(), Refusal> {
        if let Some(folder) = self.path.parent() {
            self.files.make_folder(folder, FOLDER_MODE)?;
        }
        self.files.write(&self.path, text.as_bytes(), FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::privilege::InvokingUser;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    fn ann(home: &Path) -> UserRights {
        UserRights::of(InvokingUser {
            uid: 65_534,
            gid: 65_534,
            groups: vec![65_534],
            name: "ann".into(),
            home: home.to_owned(),
        })
    }

    fn path(rights: &UserRights, variables: &[(&str, &str)]) -> Option<PathBuf> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        StateFile::of(rights, lookup).map(|file| file.path)
    }

    #[test]
    fn it_is_where_state_belongs() {
        let home = ("HOME", "/home/ann");
        let own: PathBuf = "/home/ann/.local/state/proftop/state.toml".into();
        assert_eq!(path(&UserRights::own(), &[home]), Some(own.clone()));
        assert_eq!(
            path(&UserRights::own(), &[home, ("XDG_STATE_HOME", "/s")]),
            Some("/s/proftop/state.toml".into())
        );
        assert_eq!(
            path(&UserRights::own(), &[home, ("XDG_STATE_HOME", "s")]),
            Some(own.clone())
        );
        assert_eq!(path(&UserRights::own(), &[]), None);
        let sudo = ann(Path::new("/home/ann"));
        assert_eq!(
            path(&sudo, &[("HOME", "/root"), ("XDG_STATE_HOME", "/s")]),
            Some(own)
        );
    }

    #[test]
    fn it_is_written_whole_and_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = UserRights::own();
        let file = StateFile {
            path: folder.path().join("deep/er/state.toml"),
            files: UserFiles::of(&own),
        };
        assert_eq!(file.read(), None);
        file.write("a = 1").expect("it can be written");
        file.write("a = 2").expect("again");
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
        let own = UserRights::own();
        let file = StateFile {
            path: "/proc/nothing/state.toml".into(),
            files: UserFiles::of(&own),
        };
        assert!(file.write("").is_err());
    }

    #[test]
    fn current_it_is_written_with_the_users_rights() {
        if !test_support::is_root_or_skip("only root can be another user") {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (home, roots) = (folder.path().join("ann"), folder.path().join("root"));
        for path in [&home, &roots] {
            fs::create_dir(path).expect("a folder");
        }
        // The user needs access to the parent folder.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("ours");
        std::os::unix::fs::chown(&home, Some(65_534), Some(65_534)).expect("root may");
        let ann = ann(&home);
        let file = StateFile::of(&ann, |_| None).expect("a home");
        file.write("a = 1").expect("it is theirs");
        assert_eq!(fs::metadata(&file.path).expect("it is there").uid(), 65_534);
        assert_eq!(file.read(), Some("a = 1".into()));
        // This thread is still root.
        assert!(rustix::process::geteuid().is_root());
        assert!(fs::write(roots.join("still"), "root").is_ok());

        // A link to a folder of root does not help: files are written with the user's rights.
        let state = home.join(".local/state/proftop");
        fs::remove_dir_all(&state).expect("ours");
        std::os::unix::fs::symlink(&roots, &state).expect("a link");
        assert!(file.write("a = 2").is_err());
        assert!(!roots.join("state.toml").exists());
    }

    #[test]
    fn current_a_folder_that_is_swapped_lends_no_rights() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};
        if !test_support::is_root_or_skip("only root can be another user") {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("ours");
        let (home, roots) = (folder.path().join("ann"), folder.path().join("root"));
        for path in [&home, &roots] {
            fs::create_dir(path).expect("a folder");
        }
        let state = home.join(".local/state");
        fs::create_dir_all(&state).expect("a folder");
        for path in [&home, &home.join(".local"), &state] {
            std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).expect("root may");
        }
        let link = home.join("link");
        std::os::unix::fs::symlink(&roots, &link).expect("a link");
        let ann = ann(&home);
        let file = StateFile::of(&ann, |_| None).expect("a home");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &state, CWD, &link, RenameFlags::EXCHANGE).expect("swapped");
                }
            });
            for number in 0..200 {
                // It succeeds in the user's own folder only.
                _ = file.write(&format!("a = {number}"));
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(&roots).expect("root's").count(), 0);
    }
}
