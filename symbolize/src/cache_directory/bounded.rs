//! A cache directory that stays within its bounds: the least recently used
//! files make room for new ones.

use super::Directory;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a cache keeps on disk, whatever that is.
#[derive(Debug)]
pub struct BoundedDirectory {
    directory: Directory,
    bytes_max: u64,
    /// Bytes of all files, as far as we know.
    bytes: Mutex<u64>,
    /// Cleared when writing has failed: it would fail again.
    is_writable: AtomicBool,
    damaged: AtomicU64,
}

impl BoundedDirectory {
    /// Keeps the files of `directory` within `bytes_max` together.
    pub fn new(directory: Directory, bytes_max: u64) -> Self {
        let bounded = Self {
            directory,
            bytes_max,
            bytes: Mutex::new(0),
            is_writable: AtomicBool::new(true),
            damaged: AtomicU64::new(0),
        };
        bounded.shrink();
        bounded
    }

    /// See [`Directory::read`].
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.directory.read(name, bytes_max)
    }

    /// See [`Directory::open_file`].
    pub fn open_file(&self, name: &str, bytes_max: u64) -> io::Result<(File, u64)> {
        self.directory.open_file(name, bytes_max)
    }

    /// Whether a file may be kept, as far as is known.
    pub fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::Relaxed)
    }

    /// Keeps a file for later runs, if that can be done. True if it was.
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

    /// The same of what is made while it is written, and no longer than `bytes_max`:
    /// nothing is made if nothing can be kept.
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

    /// There is a new file of that length.
    fn count(&self, length: u64) {
        let total = {
            let mut total = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            *total += length;
            *total
        };
        if total > self.bytes_max {
            self.shrink();
        }
    }

    /// Removes a file that turned out to be damaged, and counts it.
    pub fn reject(&self, name: &str) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        self.directory.remove(name);
    }

    /// Files that were not whole.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Counts what is there, and removes the oldest if it is too much.
    fn shrink(&self) {
        let mut total = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = self.directory.files();
        files.sort_by_key(|file| file.used);
        *total = files.iter().map(|file| file.bytes).sum();
        if *total <= self.bytes_max {
            return;
        }
        // Some more, so that not every new file has to look for old ones.
        let target = self.bytes_max / 8 * 7;
        for file in files {
            if *total <= target {
                break;
            }
            self.directory.remove(&file.name);
            *total -= file.bytes;
        }
    }
}
