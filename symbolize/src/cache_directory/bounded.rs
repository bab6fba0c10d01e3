//! A cache directory with a size limit: the least recently used files are removed to make room for
//! new ones.

use super::Directory;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A cache directory with a size limit, whatever its files contain.
#[derive(Debug)]
pub struct BoundedDirectory {
    directory: Directory,
    bytes_max: u64,
    /// Bytes of all files, as far as known; other processes may add some. `None` before something
    /// is stored: until then nobody needs it, and there may be thousands of files.
    bytes: Mutex<Option<u64>>,
    /// Cleared when a write has failed: further writes would fail, too.
    is_writable: AtomicBool,
    damaged: AtomicU64,
}

impl BoundedDirectory {
    /// Keeps the files of `directory` below `bytes_max` together whenever one is added.
    pub fn new(directory: Directory, bytes_max: u64) -> Self {
        Self {
            directory,
            bytes_max,
            bytes: Mutex::new(None),
            is_writable: AtomicBool::new(true),
            damaged: AtomicU64::new(0),
        }
    }

    /// See [`Directory::read`].
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.directory.read(name, bytes_max)
    }

    /// See [`Directory::open_file`].
    pub fn open_file(&self, name: &str, bytes_max: u64) -> io::Result<(File, u64)> {
        self.directory.open_file(name, bytes_max)
    }

    /// Whether files can be written, as far as known.
    pub fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::Relaxed)
    }

    /// Stores a file for later runs; returns whether that succeeded.
    pub fn store(&self, name: &str, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        if length > self.bytes_max || !self.is_writable() {
            return false;
        }
        if self.directory.write(name, bytes).is_err() {
            self.is_writable.store(false, Ordering::Relaxed);
            return false;
        }
        self.count(length);
        true
    }

    /// Stores a file of at most `bytes_max` whose contents are produced while writing. Nothing is
    /// produced if nothing can be stored.
    pub fn store_with(
        &self,
        name: &str,
        bytes_max: u64,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> bool {
        if !self.is_writable() {
            return false;
        }
        let length = self
            .directory
            .write_with(name, |file| {
                write(file)?;
                let length = file.metadata()?.len();
                if length > self.bytes_max.min(bytes_max) {
                    Err(io::ErrorKind::FileTooLarge.into())
                } else {
                    Ok(length)
                }
            })
            .ok();
        length.inspect(|length| self.count(*length)).is_some()
    }

    /// Counts a new file of that length.
    fn count(&self, length: u64) {
        let total = {
            let mut known = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(total) = &mut *known {
                *total += length;
            }
            *known
        };
        if total.is_none_or(|total| total > self.bytes_max) {
            self.shrink();
        }
    }

    /// Removes a file that turned out to be damaged, and counts it.
    pub fn reject(&self, name: &str) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        self.directory.remove(name);
    }

    /// Number of damaged files that were found.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Sums up the sizes of all files, and removes the oldest ones if there is too much.
    fn shrink(&self) {
        let mut known = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = self.directory.files();
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        if total > self.bytes_max {
            files.sort_unstable_by_key(|file| file.used);
            // Removes more than needed, so that not every new file causes another search for old
            // ones.
            let target = self.bytes_max / 8 * 7;
            for file in files {
                if total <= target {
                    break;
                }
                self.directory.remove(&file.name);
                total -= file.bytes;
            }
        }
        *known = Some(total);
    }
}
