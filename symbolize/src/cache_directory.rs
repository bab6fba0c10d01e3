//! A directory of ours that nobody else may use, and the files in it: where
//! what was found out about files is kept for later runs.

mod bounded;
mod proof;

pub use bounded::BoundedDirectory;
pub use proof::Proof;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Whoever began to write one that long ago does so no more.
const UNFINISHED_SECONDS: i64 = 3600;

/// Which of two files was used last need not be known better: to say it is a write
/// to the disk.
const USE_COUNTS_FOR: Duration = Duration::from_secs(600);

/// Where caches are by default: `/var/cache` for root, else what
/// `XDG_CACHE_HOME` says, or `~/.cache`.
pub fn default_base() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/cache"));
    }
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let from_variable = |name| std::env::var_os(name).map(PathBuf::from).and_then(absolute);
    from_variable("XDG_CACHE_HOME").or_else(|| Some(from_variable("HOME")?.join(".cache")))
}

/// A directory of cache files that nobody else can write to.
#[derive(Debug)]
pub struct Directory {
    directory: OwnedFd,
}

/// A file in it.
#[derive(Debug)]
pub struct CacheFile {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last written or read: seconds and nanoseconds.
    pub used: (i64, u64),
}

impl Directory {
    /// Opens `base/parts…`. What is missing is made, for us alone.
    pub fn open(base: &Path, parts: &[&str]) -> io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(base)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = rustix::fs::open(base, flags, Mode::empty())?;
        for part in parts {
            match rustix::fs::mkdirat(&directory, *part, Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                // It may be there for reading.
                Err(rustix::io::Errno::ROFS) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = flags | OFlags::NOFOLLOW;
            directory = rustix::fs::openat(&directory, *part, flags, Mode::empty())?;
            // Who may write to a directory may replace what is in it.
            require_ours(&rustix::fs::fstat(&directory)?, 0o022)?;
        }
        require_ours(&rustix::fs::fstat(&directory)?, 0o077)?;
        Ok(Self { directory })
    }

    /// The bytes of a file, if it is ours and not too large. Reading counts as
    /// use.
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let (file, length) = self.open_file(name, bytes_max)?;
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// A file to be read piece by piece, and its length, on the same terms. It
    /// stays whole when another takes its place.
    pub fn open_file(&self, name: &str, bytes_max: u64) -> io::Result<(File, u64)> {
        // Not to hang, should it be a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        require_ours(&status, 0o022)?;
        let length = status.st_size.cast_unsigned();
        if !FileType::from_raw_mode(status.st_mode).is_file() || length > bytes_max {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = File::from(file);
        let now = SystemTime::now();
        if now > used(&status) + USE_COUNTS_FOR {
            // Only a hint which files are worth keeping.
            _ = file.set_modified(now);
        }
        Ok((file, length))
    }

    /// Writes a whole file, or nothing.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_with(name, |file| file.write_all(bytes))
    }

    /// The same of what is made while it is written.
    pub fn write_with<T>(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = format!("{UNFINISHED}{}-{number}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, &*unfinished, flags, mode)?;
        let written = write(&mut File::from(file)).and_then(|written| {
            let directory = &self.directory;
            rustix::fs::renameat(directory, &*unfinished, directory, name)?;
            Ok(written)
        });
        if written.is_err() {
            self.remove(&unfinished);
        }
        written
    }

    /// Removes a file; if that fails there is nothing to be done.
    pub fn remove(&self, name: &str) {
        _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }

    /// All finished files. Others of former runs are removed.
    pub fn files(&self) -> Vec<CacheFile> {
        let Ok(entries) = Dir::read_from(&self.directory) else {
            return Vec::new();
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().to_str().ok()?;
            (name != "." && name != "..").then(|| name.to_owned())
        });
        names.filter_map(|name| self.file(name)).collect()
    }

    fn file(&self, name: String) -> Option<CacheFile> {
        let status = rustix::fs::statat(&self.directory, &*name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if name.starts_with(UNFINISHED) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |now| now.as_secs().cast_signed());
            if now - status.st_mtime > UNFINISHED_SECONDS {
                self.remove(&name);
            }
            return None;
        }
        Some(CacheFile {
            name,
            bytes: status.st_size.cast_unsigned(),
            used: (status.st_mtime, status.st_mtime_nsec),
        })
    }
}

fn used(status: &Stat) -> SystemTime {
    let seconds = u64::try_from(status.st_mtime).unwrap_or(0);
    // As far as the calendar goes: a time that nobody can have written counts as long ago.
    let used = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    used.unwrap_or(UNIX_EPOCH)
}

fn require_ours(status: &Stat, forbidden: u32) -> io::Result<()> {
    let is_ours = status.st_uid == rustix::process::geteuid().as_raw();
    if is_ours && status.st_mode & forbidden == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}
