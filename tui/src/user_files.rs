//! *User files* are files that proftop writes for the user who called it, and files that it reads
//! from that user's home. Only this module accesses them, always with the user's rights
//! ([`UserRights`]).
//!
//! - A path whose last part is a symbolic link is refused, never followed.
//! - An existing file is never truncated: a new file is written beside it and takes over its name.
//!   Other names of the old file (hard links) keep the old contents.
//! - An existing file is replaced only if the user could have written to it.
//! - The owner of a file is never changed (`chown`): it belongs to the user whose rights created
//!   it.
//!
//! This module does not rely on the `fs.protected_*` settings of the kernel.

/// A file that gets its name only when it is complete.
mod new_file;
/// What a path leads to, checked before it is written to.
mod place;

pub use new_file::NewFile;

use place::{FolderEntry, Found};
use probe::privilege::UserRights;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

/// Why a file is not written, as a sentence without the file's name.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("it exists already")]
    Exists,
    #[error("it is a symbolic link, which is not followed: name the file that it leads to")]
    Link,
    #[error("it is a {0}")]
    Kind(&'static str),
    #[error("it is a pipe of uid {0}, who would read what comes")]
    OthersPipe(u32),
    #[error("a file of uid {owner} is there: {source}")]
    NotWritable { owner: u32, source: io::Error },
    #[error("it was changed at this moment by somebody else")]
    Changed,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Refusal::Io(errno.into())
    }
}

/// How a complete file is written.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Whether it may replace an existing file.
    pub replaces: bool,
    /// The permissions of a new file, before the user's umask.
    pub mode: u32,
}

impl Manner {
    /// Returns the usual settings for a file that the user asks for.
    pub fn usual(replaces: bool) -> Self {
        Manner {
            replaces,
            mode: 0o666,
        }
    }
}

/// A destination that [`UserFiles::create`] has opened.
#[derive(Debug)]
pub enum Created {
    /// A pipe or a terminal, which can be written to at once.
    Open(File),
    /// A regular file that has no name yet. `replaces` says whether an existing file has that name.
    Unnamed { new: NewFile, replaces: bool },
}

/// Access to files with the rights of one user.
#[derive(Debug, Clone, Copy)]
pub struct UserFiles<'a> {
    rights: &'a UserRights,
}

impl UserFiles<'static> {
    /// Returns access with the rights of the user who called proftop.
    pub fn current() -> Self {
        UserFiles {
            rights: UserRights::current(),
        }
    }
}

impl<'a> UserFiles<'a> {
    /// Returns access with these rights.
    pub fn of(rights: &'a UserRights) -> Self {
        UserFiles { rights }
    }

    /// Creates a file that is written piece by piece and gets its name from [`UserFiles::name`];
    /// until then an existing file of this name stays. An existing pipe or terminal is opened
    /// instead; opening a pipe waits for its reader.
    pub fn create(self, path: &Path, replaces: bool) -> Result<Created, Refusal> {
        self.run(|| {
            let place = FolderEntry::open(path)?;
            let found = place.look(replaces)?;
            if let Found::Stream(file) = found {
                return Ok(Created::Open(file));
            }
            let new = NewFile::begin(place, Mode::from_raw_mode(0o666))?;
            let replaces = if let Found::Regular { mode } = found {
                new.set_mode(mode)?;
                true
            } else {
                false
            };
            Ok(Created::Unnamed { new, replaces })
        })
    }

    /// Gives a created file its name, and returns it so that it can be written to.
    pub fn name(self, new: NewFile, replaces: bool) -> Result<File, Refusal> {
        self.run(move || {
            if replaces {
                new.replace()
            } else {
                new.publish()
            }
        })
    }

    /// Writes a whole file. An existing one stays until the new one is complete, so that the name
    /// never leads to a part of a file.
    pub fn write(self, path: &Path, bytes: &[u8], manner: Manner) -> Result<(), Refusal> {
        self.run(|| {
            let place = FolderEntry::open(path)?;
            let found = place.look(manner.replaces)?;
            if let Found::Stream(mut file) = found {
                return Ok(file.write_all(bytes)?);
            }
            let mut new = NewFile::begin(place, Mode::from_raw_mode(manner.mode))?;
            new.file().write_all(bytes)?;
            if let Found::Regular { mode } = found {
                new.set_mode(mode)?;
                new.replace().map(drop)
            } else {
                new.publish().map(drop)
            }
        })
    }

    /// Writes a whole file and replaces an existing one. `write` runs with our own rights, which it
    /// may need to read what it writes.
    pub fn write_with<T, E>(
        self,
        path: &Path,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<Result<T, E>, Refusal> {
        let mut new = self.run(|| {
            let place = FolderEntry::open(path)?;
            place.look(true)?.require_file()?;
            NewFile::begin(place, Mode::from_raw_mode(0o666))
        })?;
        let written = write(new.file());
        let is_whole = written.is_ok();
        self.run(move || {
            if is_whole {
                new.replace().map(drop)
            } else {
                Ok(())
            }
        })?;
        Ok(written)
    }

    /// Creates a file without a name, which can also be read. [`UserFiles::publish`] gives it its
    /// name; a file that is dropped without one is removed.
    pub fn begin(self, path: &Path) -> Result<NewFile, Refusal> {
        self.run(|| NewFile::begin(FolderEntry::open(path)?, Mode::from_raw_mode(0o666)))
    }

    /// Sets the permissions of a file that has no name yet, whatever the user's umask is.
    pub fn set_mode(self, new: &NewFile, mode: Mode) -> Result<(), Refusal> {
        self.run(|| new.set_mode(mode))
    }

    /// Gives a file its name. Returns an error if the name is taken.
    pub fn publish(self, new: NewFile) -> Result<(), Refusal> {
        self.run(move || new.publish().map(drop))
    }

    /// Creates a folder and its missing parent folders, with these permissions.
    pub fn make_folder(self, path: &Path, mode: u32) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(mode);
        self.rights.run(|| builder.create(path))
    }

    /// Reads a regular file as text. Returns an error if it is larger than `bytes_max` or is not
    /// UTF-8.
    pub fn read(self, path: &Path, bytes_max: u64) -> io::Result<String> {
        let bytes = self.read_bytes(path, bytes_max)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Reads a regular file. Returns an error if it is larger than `bytes_max`.
    pub fn read_bytes(self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.rights.run(|| read(path, bytes_max))
    }

    /// Opens a regular file. Returns an error if it is larger than `bytes_max`.
    pub fn open(self, path: &Path, bytes_max: u64) -> io::Result<File> {
        self.rights.run(|| open(path, bytes_max))
    }

    /// Returns the time of the last change of a file. Symbolic links are followed.
    pub fn changed(self, path: &Path) -> io::Result<SystemTime> {
        self.rights.run(|| std::fs::metadata(path)?.modified())
    }

    /// Returns the identity of the file that has this name now: the number of its device and its
    /// inode number. Returns `None` if it does not exist.
    pub fn identity(self, path: &Path) -> io::Result<Option<(u64, u64)>> {
        let identity = self.rights.run(|| {
            let status = std::fs::symlink_metadata(path)?;
            Ok((status.dev(), status.ino()))
        });
        match identity {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            identity => identity.map(Some),
        }
    }

    /// Returns the names of the entries of a folder.
    pub fn list(self, folder: &Path) -> io::Result<Vec<OsString>> {
        let list = || {
            std::fs::read_dir(folder)?
                .map(|entry| Ok(entry?.file_name()))
                .collect()
        };
        self.rights.run(list)
    }

    /// Removes a file. Of a symbolic link only the link is removed.
    pub fn remove(self, path: &Path) -> io::Result<()> {
        self.rights.run(|| std::fs::remove_file(path))
    }

    /// Gives a file another name in its folder. Returns an error if that name is taken.
    pub fn rename(self, from: &Path, to: &Path) -> Result<(), Refusal> {
        self.run(|| {
            let (from, to) = (FolderEntry::open(from)?, FolderEntry::open(to)?);
            match from.rename(&from.name, &to) {
                Err(Errno::EXIST) => Err(Refusal::Exists),
                renamed => Ok(renamed?),
            }
        })
    }

    /// Runs work with the user's rights. Errors of the work are returned unchanged.
    fn run<T: Send>(self, work: impl FnOnce() -> Result<T, Refusal> + Send) -> Result<T, Refusal> {
        self.rights.run(|| Ok(work()))?
    }
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, bytes_max)?
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path, bytes_max: u64) -> io::Result<File> {
    // With NONBLOCK, opening a pipe does not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > bytes_max {
        let bytes = metadata.len();
        let what = format!("it has {bytes} bytes, more than {bytes_max}");
        return Err(io::Error::other(what));
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
