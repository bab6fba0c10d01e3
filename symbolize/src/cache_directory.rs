//! A directory that only we can write to, and the files in it: what was found out about files is
//! kept there for later runs.

/// The directory that all caches lie in.
mod base;
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

/// Name prefix of files that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Age in seconds after which an unfinished file is considered abandoned.
const UNFINISHED_SECONDS: i64 = 3600;

/// Resolution of the time of last use: recording it more exactly would cost a disk write for each
/// use.
const USE_COUNTS_FOR: Duration = Duration::from_secs(600);

/// The variable that names another directory for caches than [`default_base`] does otherwise. Tests
/// set it, so that they leave nothing behind, and find nothing that an earlier build has made.
const VARIABLE: &str = "PROFTOP_CACHE";

/// The default directory for caches: `PROFTOP_CACHE`, or `/var/cache` for root and for others
/// `XDG_CACHE_HOME` or `~/.cache`.
pub fn default_base() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let from_variable = |name| std::env::var_os(name).map(PathBuf::from).and_then(absolute);
    if let Some(base) = from_variable(VARIABLE) {
        return Some(base);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/cache"));
    }
    from_variable("XDG_CACHE_HOME").or_else(|| Some(from_variable("HOME")?.join(".cache")))
}

/// A directory of cache files that only we can write to.
#[derive(Debug)]
pub struct Directory {
    directory: OwnedFd,
}

/// A file in the directory.
#[derive(Debug)]
pub struct CacheFile {
    /// Its name in the directory.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was last written or read: seconds and nanoseconds.
    pub used: (i64, u64),
}

impl Directory {
    /// Opens `base/parts…`. Missing directories are created with access for us alone. With the
    /// rights of root, `base` is refused if another user could choose where it leads.
    pub fn open(base: &Path, parts: &[&str]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = if rustix::process::geteuid().is_root() {
            base::open(base)?
        } else {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(base)?;
            rustix::fs::open(base, flags, Mode::empty())?
        };
        for part in parts {
            match rustix::fs::mkdirat(&directory, *part, Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                // On a read-only filesystem the directory may exist and be readable.
                Err(rustix::io::Errno::ROFS) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = flags | OFlags::NOFOLLOW;
            directory = rustix::fs::openat(&directory, *part, flags, Mode::empty())?;
            // Anyone who can write to a directory can replace the files in it.
            require_ours(&rustix::fs::fstat(&directory)?, 0o022)?;
        }
        require_ours(&rustix::fs::fstat(&directory)?, 0o077)?;
        Ok(Self { directory })
    }

    /// Reads a file, if it belongs to us and is not too large. Reading counts as use.
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let (file, length) = self.open_file(name, bytes_max)?;
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Opens a file for reading in pieces, and returns it with its length, under the same
    /// conditions as [`Directory::read`]. The open file stays complete when another one replaces
    /// it.
    pub fn open_file(&self, name: &str, bytes_max: u64) -> io::Result<(File, u64)> {
        // Opening must not block if the file is a pipe.
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
            // Errors are ignored: the time is only a hint which files are worth keeping.
            _ = file.set_modified(now);
        }
        Ok((file, length))
    }

    /// Writes a whole file, or nothing if that fails.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_with(name, |file| file.write_all(bytes))
    }

    /// Writes a file whose contents are produced while writing, or nothing if that fails.
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

    /// Removes a file; errors are ignored.
    pub fn remove(&self, name: &str) {
        _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }

    /// Returns all finished files. Abandoned unfinished ones are removed.
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
    // A time outside of the representable range, which no real write can have, counts as long ago.
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
