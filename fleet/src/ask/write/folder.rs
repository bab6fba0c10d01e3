//! A folder that gets its name only when it is complete. Until then it is hidden next to its place,
//! and removed if it cannot be finished. The remains of a killed run are removed by the next run
//! for the same place.

use crate::failure::{Failure, shown};
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file whose lock protects the folder. It is in the folder, so that it is removed together
/// with it.
const LOCK: &str = ".lock";

/// A folder that is being written.
pub struct NewFolder {
    path: PathBuf,
    part: PathBuf,
    /// Held until the folder has its name, or is removed.
    lock: File,
    is_finished: bool,
}

impl NewFolder {
    /// Makes the hidden folder. Returns an error if there is anything at `path`, or if another run
    /// is writing it.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::failed(format!("cannot make the folder {}: {error}", shown(path)))
        };
        let name = path.file_name().ok_or_else(|| {
            Failure::usage(format!("{} is no name for a new folder", shown(path)))
        })?;
        if path.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!(
                "{} is there already: choose another name, or remove it",
                shown(path)
            )));
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".part");
        let part = path.with_file_name(hidden);
        loop {
            match fs::create_dir(&part) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(error));
                }
                _ => {}
            }
            if !is_ours(&part) {
                return Err(Failure::failed(format!(
                    "{} is no folder of this user, and is in the way: remove it, or choose another name",
                    shown(&part)
                )));
            }
            let Some(lock) = lock(&part).map_err(failed)? else {
                return Err(Failure::failed(format!(
                    "another proftop-fleet is writing {}: wait for it, or choose another name",
                    shown(path)
                )));
            };
            if !is_at(&lock, &part.join(LOCK)) {
                // Another run has finished or removed the folder since it was opened.
                if path.symlink_metadata().is_ok() {
                    return Err(failed(io::ErrorKind::AlreadyExists.into()));
                }
                continue;
            }
            let folder = Self {
                path: path.into(),
                part,
                lock,
                is_finished: false,
            };
            folder.clear().map_err(failed)?;
            return Ok(folder);
        }
    }

    /// Returns the hidden folder, into which to write.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Gives the folder its name, after all of it is on the disk: the caller may then remove its
    /// sources.
    pub fn finish(mut self) -> Result<(), Failure> {
        let name = shown(&self.path);
        self.rename()
            .map_err(|error| Failure::failed(format!("cannot write {name}: {error}")))
    }

    fn rename(&mut self) -> io::Result<()> {
        rustix::fs::syncfs(&self.lock)?;
        rename(&self.part, &self.path)?;
        self.is_finished = true;
        fs::remove_file(self.path.join(LOCK))?;
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(parent)?.sync_all()
    }

    /// Removes the remains of a killed run.
    fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.part)? {
            let entry = entry?;
            if entry.file_name() == LOCK {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            // The next run for the same place removes what cannot be removed now.
            let _ = fs::remove_dir_all(&self.part);
        }
    }
}

/// Locks a folder; `None` if another run has the lock.
fn lock(part: &Path) -> io::Result<Option<File>> {
    let opened = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(part.join(LOCK));
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Another run has just finished or removed the folder: the caller detects that with any
            // file.
            return File::open("/dev/null").map(Some);
        }
        opened => opened?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether it is a folder that this user has made, and not a link into the folder of another user,
/// as its content is removed. True if it no longer exists.
fn is_ours(part: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    part.symlink_metadata()
        .map_or(true, |it| it.is_dir() && it.uid() == own)
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), path.symlink_metadata()) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// Renames a folder without replacing anything.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag. They replace an empty folder and nothing else.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        renamed => renamed.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_has_its_name_when_it_is_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let folder = NewFolder::begin(&path).unwrap();
        fs::write(folder.part().join("a"), "a").unwrap();
        assert_eq!(names(place.path()), [".out.part"]);
        let second = NewFolder::begin(&path).err().unwrap().to_string();
        assert!(second.contains("another proftop-fleet"), "{second}");
        folder.finish().unwrap();
        assert_eq!(names(place.path()), ["out"]);
        assert_eq!(names(&path), ["a"]);
        let third = NewFolder::begin(&path).err().unwrap().to_string();
        assert!(third.contains("is there already"), "{third}");
        assert!(NewFolder::begin(&place.path().join("..")).is_err());
    }

    #[test]
    fn half_a_folder_is_removed_by_its_run_or_by_the_next_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        drop(NewFolder::begin(&path).unwrap());
        assert!(names(place.path()).is_empty());
        // The same state as after a kill.
        fs::create_dir_all(place.path().join(".out.part/samples")).unwrap();
        fs::write(place.path().join(".out.part/.lock"), "").unwrap();
        let folder = NewFolder::begin(&path).unwrap();
        assert_eq!(names(folder.part()), [".lock"]);
        folder.finish().unwrap();
        assert!(names(&path).is_empty());
    }

    #[test]
    fn nothing_is_removed_behind_a_link() {
        let place = tempfile::tempdir().unwrap();
        let theirs = tempfile::tempdir().unwrap();
        fs::write(theirs.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink(theirs.path(), place.path().join(".out.part")).unwrap();
        let why = NewFolder::begin(&place.path().join("out")).err().unwrap();
        assert!(why.to_string().contains("is in the way"), "{why}");
        assert_eq!(names(theirs.path()), ["a"]);
    }

    #[test]
    fn a_folder_that_appears_meanwhile_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let folder = NewFolder::begin(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("theirs"), "").unwrap();
        let why = folder.finish().unwrap_err().to_string();
        assert!(why.contains("exists"), "{why}");
        assert_eq!(names(place.path()), ["out"]);
        assert_eq!(names(&path), ["theirs"]);
    }
}
