//! A *new file* has no name while it is written, and gets its name when it is complete. If we are
//! killed before that, nothing remains. On file systems without unnamed files it has a hidden name
//! until then.

use super::Refusal;
use super::place::FolderEntry;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many hidden names are tried, because some may be taken.
const NAMES_MAX: u32 = 100;

/// A file that is being written. Dropping it removes it, unless it has got its name.
#[derive(Debug)]
pub struct NewFile {
    place: FolderEntry,
    file: File,
    /// The hidden name of the file until it is complete, if it needs one.
    hidden: Option<String>,
}

impl NewFile {
    /// Creates a file. It gets a hidden name only if that is needed.
    pub(super) fn begin(place: FolderEntry, mode: Mode) -> Result<Self, Refusal> {
        if let Some(file) = unnamed(&place, mode) {
            return Ok(NewFile {
                place,
                file,
                hidden: None,
            });
        }
        Self::begin_hidden(place, mode)
    }

    /// Creates a file with a hidden name.
    pub(super) fn begin_hidden(place: FolderEntry, mode: Mode) -> Result<Self, Refusal> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let create = |name: &str| rustix::fs::openat(&place.folder, name, flags, mode);
        let (name, file) = with_hidden_name(create)?;
        Ok(NewFile {
            place,
            file: file.into(),
            hidden: Some(name),
        })
    }

    /// Returns the file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Sets the permissions, for example to those of the file that it will replace.
    pub(super) fn set_mode(&self, mode: Mode) -> Result<(), Refusal> {
        Ok(rustix::fs::fchmod(&self.file, mode)?)
    }

    /// Gives the file its name. Returns [`Refusal::Exists`] if the name is taken.
    pub(super) fn publish(mut self) -> Result<File, Refusal> {
        let name = &self.place.name;
        let named = match &self.hidden {
            None => link(&self.file, &self.place, name),
            Some(hidden) => self.place.rename(hidden.as_str(), &self.place),
        };
        match named {
            Err(Errno::EXIST) => Err(Refusal::Exists),
            named => {
                named?;
                self.hidden = None;
                Ok(self.file.try_clone()?)
            }
        }
    }

    /// Gives the file its name, and replaces the file that has it.
    pub(super) fn replace(mut self) -> Result<File, Refusal> {
        if self.hidden.is_none() {
            let link = |name: &str| link(&self.file, &self.place, name);
            let (name, ()) = with_hidden_name(link)?;
            self.hidden = Some(name);
        }
        if let Some(hidden) = &self.hidden {
            let folder = &self.place.folder;
            rustix::fs::renameat(folder, hidden, folder, &self.place.name)?;
            self.hidden = None;
        }
        Ok(self.file.try_clone()?)
    }

    fn forget(&self) {
        if let Some(hidden) = &self.hidden {
            // An error is ignored: there is nothing more to do.
            _ = rustix::fs::unlinkat(&self.place.folder, hidden, AtFlags::empty());
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Creates a file without a name that can get one later. Returns `None` if the file system, or a
/// missing `/proc`, does not allow that.
fn unnamed(place: &FolderEntry, mode: Mode) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.folder, ".", flags, mode).ok()?;
    let file = File::from(file);
    let is_reachable = rustix::fs::stat(by_descriptor(&file)).is_ok();
    is_reachable.then_some(file)
}

fn link(file: &File, place: &FolderEntry, name: impl rustix::path::Arg) -> rustix::io::Result<()> {
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(CWD, by_descriptor(file), &place.folder, name, flags)
}

/// Returns a path to an open file. `linkat` with the descriptor itself would need
/// `CAP_DAC_READ_SEARCH`.
fn by_descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Calls `take` with hidden names until it succeeds with a name that is not taken.
fn with_hidden_name<T>(
    mut take: impl FnMut(&str) -> rustix::io::Result<T>,
) -> Result<(String, T), Refusal> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..NAMES_MAX {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".proftop-{}-{number}", std::process::id());
        match take(&name) {
            Err(Errno::EXIST) => {}
            taken => return Ok((name, taken?)),
        }
    }
    Err(Errno::EXIST.into())
}
