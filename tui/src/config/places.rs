//! Where configurations are. Under sudo the file is that of the user who called
//! it, and it is read by root: so it has to be that user's own, a regular file,
//! and small; what it says is never repeated beyond one key.

use probe::privilege::InvokingUser;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

const MACHINE: &str = "/etc/proftop.toml";
const BYTES_MAX: u64 = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    /// Whose it has to be.
    owner: Option<u32>,
}

/// The files that are read, in this order: what comes later wins.
pub fn files() -> Vec<Place> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    places(InvokingUser::under_sudo(), variable)
}

/// Whose source is looked at: under sudo that of the user who called it.
pub fn home() -> Option<PathBuf> {
    InvokingUser::under_sudo()
        .map(|user| user.home)
        .or_else(|| std::env::var_os("HOME").map(PathBuf::from))
        .filter(|home| home.is_absolute())
}

fn places(
    invoking: Option<InvokingUser>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<Place> {
    let anybodys = |path| Place { path, owner: None };
    if let Some(only) = variable("PROFTOP_CONFIG") {
        return vec![anybodys(only.into())];
    }
    let mut places = vec![anybodys(MACHINE.into())];
    let user = match invoking {
        // Their environment is not ours.
        Some(user) => Some(Place {
            path: user.home.join(".config/proftop/config.toml"),
            owner: Some(user.uid),
        }),
        None => variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))
            .map(|folder| anybodys(folder.join("proftop/config.toml"))),
    };
    places.extend(user);
    places
}

impl Place {
    /// A file that has to belong to `owner`, if that is given.
    pub fn new(path: PathBuf, owner: Option<u32>) -> Self {
        Place { path, owner }
    }

    /// For a message; its characters may be anybody's.
    pub fn name(&self) -> String {
        let bytes = self.path.as_os_str().as_encoded_bytes();
        symbolize::sanitize(bytes).into_owned()
    }

    /// Nothing if there is none.
    pub fn read(&self) -> Result<Option<String>, String> {
        match self.open() {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot be read: {error}")),
        }
    }

    fn open(&self) -> io::Result<String> {
        // A pipe there must not keep us waiting.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if let Some(owner) = self.owner
            && metadata.uid() != owner
        {
            return Err(io::Error::other(format!(
                "it does not belong to uid {owner}, who called sudo"
            )));
        }
        if metadata.len() > BYTES_MAX {
            return Err(io::Error::other(format!(
                "it has {} bytes, more than {BYTES_MAX}",
                metadata.len()
            )));
        }
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(invoking: Option<InvokingUser>, variables: &[(&str, &str)]) -> Vec<String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let places = places(invoking, lookup);
        places.iter().map(Place::name).collect()
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
            names(Some(ann), &[("HOME", "/root"), ("XDG_CONFIG_HOME", "/xdg")]),
            [MACHINE, own]
        );
    }

    #[test]
    fn only_a_small_regular_file_of_its_owner_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let place = |owner| Place {
            path: path.clone(),
            owner,
        };
        assert_eq!(place(None).read(), Ok(None));
        std::fs::write(&path, "a = 1").unwrap();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(place(Some(uid)).read(), Ok(Some("a = 1".into())));
        let error = place(Some(uid + 1)).read().unwrap_err();
        assert!(error.contains("does not belong to"), "{error}");
        std::fs::write(&path, " ".repeat(BYTES_MAX as usize + 1)).unwrap();
        assert!(place(None).read().unwrap_err().contains("more than"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(place(None).read().is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(
            place(None)
                .read()
                .unwrap_err()
                .contains("not a regular file")
        );
    }
}
