//! A *place* is an open folder and a name in it. All that is done there happens in this
//! folder, even if its path leads elsewhere a moment later.

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

/// What has the name and can be written to.
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
    /// Opens the folder of a path. An error if the path is a folder itself.
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

    /// Gives what has a name in this folder the name of another place, if nothing has that.
    pub fn rename(&self, name: impl Arg + Copy, to: &FolderEntry) -> rustix::io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.folder, name, &to.folder, &to.name, flags) {
            // Network file systems cannot do this.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let flags = AtFlags::empty();
                rustix::fs::linkat(&self.folder, name, &to.folder, &to.name, flags)?;
                rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Finds out what has the name, and opens it if it is a pipe or a device. An error if
    /// it must not be written to; a regular file must not unless `replaces`.
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
                // Opened only to see whether the user could write to it.
                let opened = self.open_same(&status, OFlags::NONBLOCK);
                opened.map_err(|refusal| not_writable(refusal, &status))?;
                let mode = Mode::from_raw_mode(status.st_mode & 0o777);
                Ok(Found::Regular { mode })
            }
        }
    }

    /// Opens what was looked at. An error if something else has its name by now.
    fn open_same(&self, seen: &Stat, more: OFlags) -> Result<File, Refusal> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC | more;
        let opened = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&opened)?;
        let is_same = (status.st_dev, status.st_ino) == (seen.st_dev, seen.st_ino);
        let is_same = is_same && status.st_mode == seen.st_mode;
        is_same.then(|| opened.into()).ok_or(Refusal::Changed)
    }
}

/// Whether a file belongs to the user of the thread that asks.
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
