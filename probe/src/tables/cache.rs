//! The *cache*: tables of earlier runs on disk, by build-id if no other user can have forged it, or
//! by file.
//!
//! It may be lost, damaged, full or shared at any moment: then tables are built again. Only its
//! owner may read or write it, because its content determines what profiles show.

mod checksum;
pub mod format;

use super::file_table::FileTable;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use symbolize::FileId;
use symbolize::cache_directory::{self, BoundedDirectory, Directory, Proof};
use symbolize::object::Summary;
use symbolize::source::Source;

/// Default of the maximum size of all files together: some 20 times what a desktop needs.
pub const BYTES_MAX: u64 = 256 << 20;

/// The path below the base directory; another format gets another last part.
pub(super) const PARTS: [&str; 3] = ["proftop", "unwind", "v4"];

/// A directory of tables.
#[derive(Debug)]
pub struct Cache {
    directory: BoundedDirectory,
    hits: AtomicU64,
}

/// The key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    name: String,
    /// The complete key, which is compared when the name is only a hash.
    text: String,
}

impl CacheKey {
    /// Returns the key of a file: by build-id. Files without one, as all that rustc links, have a
    /// key by file and time of change; `None` while the file changes, and for files that must not
    /// be cached: see [`Proof`].
    pub fn of(summary: &Summary, source: &Source) -> Option<Self> {
        let (id, file_bytes) = (summary.file_id(source).ok()?, source.len());
        let by_id = |proof: &Proof| match proof {
            Proof::Writers => Self::by_id(&id, file_bytes),
            Proof::Revisions(_) => None,
        };
        let proof = Proof::of(&[source])?;
        by_id(&proof).or_else(|| {
            let text = format!("{id} {}", Proof::by_revisions(&[source])?);
            let name = format!("file-{:016x}", checksum::of(text.as_bytes()));
            Some(Self { name, text })
        })
    }

    /// Returns the complete key.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the key for an id; `None` for files that are identified by only a part of their
    /// content.
    ///
    /// The length is included because some developers give all their builds the same id.
    pub fn by_id(id: &FileId, file_bytes: u64) -> Option<Self> {
        let text = format!("{id} {file_bytes}");
        let name = match id {
            FileId::Gnu(id) if id.as_bytes().len() >= 8 => format!("{id}-{file_bytes:x}"),
            FileId::Go(_) => format!("go-{:016x}", checksum::of(text.as_bytes())),
            FileId::Gnu(_) | FileId::Content { .. } => return None,
        };
        Some(Self { name, text })
    }
}

impl Cache {
    /// Returns the default directory of caches.
    pub fn default_base() -> Option<PathBuf> {
        cache_directory::default_base()
    }

    /// Opens the cache below `base`, and creates it if necessary.
    pub fn open(base: &Path, bytes_max: u64) -> io::Result<Self> {
        let directory = Directory::open(base, &PARTS)?;
        Ok(Self {
            directory: BoundedDirectory::new(directory, bytes_max),
            hits: AtomicU64::new(0),
        })
    }

    /// Returns the table that was stored under this key, if it is undamaged.
    pub fn load(&self, key: &CacheKey) -> Option<FileTable> {
        let (file, length) = self
            .directory
            .open_file(&key.name, format::FILE_BYTES_MAX)
            .ok()?;
        let table = format::decode(file, length, &key.text);
        match &table {
            Some(_) => _ = self.hits.fetch_add(1, Ordering::Relaxed),
            None => self.directory.reject(&key.name),
        }
        table
    }

    /// Stores a table for later runs, if possible.
    pub fn store(&self, key: &CacheKey, table: &FileTable) {
        if self.directory.is_writable() {
            let bytes = format::encode(table, &key.text);
            self.directory.store(&key.name, &bytes);
        }
    }

    /// Returns the number of tables that were found.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns the number of damaged files.
    pub fn damaged(&self) -> u64 {
        self.directory.damaged()
    }
}

#[cfg(test)]
mod tests;
