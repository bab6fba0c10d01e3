//! A *place* is an open folder and a name in it. All operations happen in this folder, even if its
//! path leads elsewhere later.

use super::Refusal;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// An open folder, and a name in it that need not exist.
#[derive(Debug)]
pub struct FolderEntry {
    pub folder: OwnedFd,
    pub name: OsString,
}

/// What was found at a place that can be written to.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// A file that may be replaced, and its permissions.
    Regular {
        mode: Mode,
    },
    /// A pipe or a device without content, open for writing.
    Stream(File),
}

impl Found {
    /// Returns an error for a pipe or a device.
    pub fn require_file(self) -> Result<(), Refusal> {
        match self {
            Found::Nothing | Found::Regular { .. } => Ok(()),
            Found::Stream(_) => Err(Refusal::Kind("pipe or a device")),
        }
    }
}

impl FolderEntry {
    /// Opens the folder of a path. Returns an error if the path itself is a folder.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let is_folder = path.as_os_str().as_bytes().ends_with(b"/");
        let name = path
            .file_name()
            .filter(|_| !is_folder)
            .ok_or(Refusal::Kind("folder"))?;
        let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Ok(FolderEntry {
            folder,
            name: name.to_owned(),
        })
    }

    /// Renames an entry of this folder to another place, if the name there is not taken.
    pub fn rename(&self, name: impl Arg + Copy, to: &FolderEntry) -> rustix::io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.folder, name, &to.folder, &to.name, flags) {
            // Network file systems do not support this flag.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let flags = AtFlags::empty();
                rustix::fs::linkat(&self.folder, name, &to.folder, &to.name, flags)?;
                rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Finds out what the place has, and opens it if it is a pipe or a device. Returns an error if
    /// it must not be written to. A regular file may be written to only if `replaces`.
    pub fn look(&self, replaces: bool) -> Result<Found, Refusal> {
        let status = rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let status = match status {
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            other => other?,
        };
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Symlink => Err(Refusal::Link),
            FileType::Directory => Err(Refusal::Kind("folder")),
            FileType::Socket => Err(Refusal::Kind("socket")),
            FileType::BlockDevice => Err(Refusal::Kind("device that holds data")),
            // In a shared folder anybody can put a pipe where a file is expected.
            FileType::Fifo if !replaces && !is_ours(&status) => {
                Err(Refusal::OthersPipe(status.st_uid))
            }
            FileType::Fifo | FileType::CharacterDevice => {
                let file = self.open_same(&status, OFlags::empty())?;
                Ok(Found::Stream(file))
            }
            _ if !replaces => Err(Refusal::Exists),
            _ => {
                // Opened only to check whether the user could write to it.
                let opened = self.open_same(&status, OFlags::NONBLOCK);
                opened.map_err(|refusal| not_writable(refusal, &status))?;
                let mode = Mode::from_raw_mode(status.st_mode & 0o777);
                Ok(Found::Regular { mode })
            }
        }
    }

    /// Opens the file that `seen` describes. Returns an error if another file has its name by now.
    fn open_same(&self, seen: &Stat, more: OFlags) -> Result<File, Refusal> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC | more;
        let opened = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&opened)?;
        let is_same = (status.st_dev, status.st_ino) == (seen.st_dev, seen.st_ino);
        let is_same = is_same && status.st_mode == seen.st_mode;
        is_same.then(|| opened.into()).ok_or(Refusal::Changed)
    }
}

/// Whether a file belongs to the user whose rights this thread has.
fn is_ours(status: &Stat) -> bool {
    status.st_uid == rustix::process::geteuid().as_raw()
}

fn not_writable(refusal: Refusal, status: &Stat) -> Refusal {
    match refusal {
        Refusal::Io(source) => Refusal::NotWritable {
            owner: status.st_uid,
            source,
        },
        other => other,
    }
}
