//! Where configuration files are. The file of the machine belongs to root. The user's own file, or
//! the one that `PROFTOP_CONFIG` names, is read with that user's rights, and only if it is a small
//! regular file. Messages repeat nothing of its contents but keys, so that naming another file does
//! not reveal its contents.

use crate::failure::without_numbers;
use crate::user_files::{Manner, Refusal, UserFiles};
use probe::privilege::{InvokingUser, UserRights};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The file for all users of the machine.
const MACHINE: &str = "/etc/proftop.toml";
/// The value of `PROFTOP_CONFIG` with which no file is read.
const NO_FILE: &str = "/dev/null";
/// Maximum size of a file, in bytes.
const BYTES_MAX: u64 = 256 << 10;

/// A configuration file, and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    path: PathBuf,
    is_users: bool,
    /// Whether `PROFTOP_CONFIG` names it, so that the user expects it to exist.
    is_named: bool,
}

/// Returns the files to read, in this order. Later ones override earlier ones.
pub fn files() -> Vec<ConfigFile> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    places(UserRights::current().user(), variable)
}

/// Returns the home directory; under sudo, that of the user who called it. None if it is not known.
pub fn home() -> Option<PathBuf> {
    UserRights::current()
        .user()
        .map(|user| user.home.clone())
        .or_else(|| std::env::var_os("HOME").map(PathBuf::from))
        .filter(|home| home.is_absolute())
}

/// Returns the files; the last one wins. Empty if `PROFTOP_CONFIG` is `/dev/null`. `variable` reads
/// the environment.
fn places(
    invoking: Option<&InvokingUser>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<ConfigFile> {
    if let Some(only) = variable("PROFTOP_CONFIG") {
        if only == NO_FILE {
            return Vec::new();
        }
        return vec![ConfigFile {
            path: only.into(),
            is_users: true,
            is_named: true,
        }];
    }
    let usual = |path, is_users| ConfigFile {
        path,
        is_users,
        is_named: false,
    };
    let machines = usual(MACHINE.into(), false);
    let base = match invoking {
        // sudo has replaced the environment of the user.
        Some(user) => Some(user.home.join(".config")),
        None => variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config"))),
    };
    let own = base.map(|base| usual(base.join("proftop/config.toml"), true));
    [machines].into_iter().chain(own).collect()
}

impl ConfigFile {
    /// Whether the file belongs to the user, and not to the machine.
    pub fn is_users(&self) -> bool {
        self.is_users
    }

    /// Whether the user has named this file, so that it should exist.
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Returns the name of the file for a message, without characters that a terminal acts on.
    pub fn name(&self) -> String {
        let bytes = self.path.as_os_str().as_encoded_bytes();
        symbolize::sanitize(bytes).into_owned()
    }

    /// Reads the file. None if it does not exist; the error says why it cannot be read.
    pub fn read(&self) -> Result<Option<String>, String> {
        let own = UserRights::own();
        let files = if self.is_users {
            UserFiles::current()
        } else {
            UserFiles::of(&own)
        };
        match files.read(&self.path, BYTES_MAX) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err("cannot be read: it is no text (UTF-8)".into())
            }
            Err(error) => {
                let why = error.to_string();
                Err(format!("cannot be read: {}", without_numbers(&why)))
            }
        }
    }

    /// Creates the file. An existing one is never overwritten, because a user has written it.
    pub fn write_new(&self, text: &str) -> Result<(), Refusal> {
        let files = UserFiles::current();
        if let Some(folder) = self.path.parent() {
            files.make_folder(folder, 0o777)?;
        }
        files.write(&self.path, text.as_bytes(), Manner::usual(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(invoking: Option<&InvokingUser>, variables: &[(&str, &str)]) -> Vec<String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let places = places(invoking, lookup);
        places.iter().map(ConfigFile::name).collect()
    }

    #[test]
    fn the_user_comes_after_the_machine() {
        let home = ("HOME", "/home/ann");
        let own = "/home/ann/.config/proftop/config.toml";
        assert_eq!(names(None, &[home]), [MACHINE, own]);
        assert_eq!(
            names(None, &[home, ("XDG_CONFIG_HOME", "/xdg")]),
            [MACHINE, "/xdg/proftop/config.toml"]
        );
        assert_eq!(
            names(None, &[home, ("XDG_CONFIG_HOME", "relative")]),
            [MACHINE, own]
        );
        assert_eq!(names(None, &[]), [MACHINE]);
        assert!(names(None, &[home, ("PROFTOP_CONFIG", "/dev/null")]).is_empty());
        assert_eq!(
            names(None, &[home, ("PROFTOP_CONFIG", "a.toml")]),
            ["a.toml"]
        );
        let ann = InvokingUser {
            uid: 1000,
            gid: 1000,
            groups: vec![1000],
            name: "ann".into(),
            home: "/home/ann".into(),
        };
        assert_eq!(
            names(
                Some(&ann),
                &[("HOME", "/root"), ("XDG_CONFIG_HOME", "/xdg")]
            ),
            [MACHINE, own]
        );
    }

    #[test]
    fn only_a_small_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let place = ConfigFile {
            path: path.clone(),
            is_users: true,
            is_named: false,
        };
        assert_eq!(place.read(), Ok(None));
        std::fs::write(&path, "a = 1").unwrap();
        assert_eq!(place.read(), Ok(Some("a = 1".into())));
        std::fs::write(&path, " ".repeat(BYTES_MAX as usize + 1)).unwrap();
        assert!(place.read().unwrap_err().contains("more than"));
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(
            place.read(),
            Err("cannot be read: it is no text (UTF-8)".into())
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(place.read().unwrap_err().contains("not a regular file"));
    }

    #[test]
    fn a_new_one_takes_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = ConfigFile {
            path: folder.path().join("a/b/config.toml"),
            is_users: true,
            is_named: false,
        };
        place.write_new("a = 1").unwrap();
        assert!(matches!(place.write_new("a = 2"), Err(Refusal::Exists)));
        assert_eq!(place.read(), Ok(Some("a = 1".into())));
    }
}
