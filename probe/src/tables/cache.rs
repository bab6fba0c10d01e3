//! The *cache*: tables of earlier runs on disk, by build-id where nobody else can have
//! forged it, or by file.
//!
//! It may be lost, damaged, full or shared at any moment: then tables are built
//! again. Only its owner may look into it or write to it, because what is in it
//! decides what profiles say.

mod checksum;
pub mod format;

use super::file_table::FileTable;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use symbolize::FileId;
use symbolize::cache_directory::{self, BoundedDirectory, Directory, Proof};
use symbolize::object::Object;

/// The default for all files together: some 20 times what a desktop runs.
pub const BYTES_MAX: u64 = 256 << 20;

/// Below the base directory; another format gets another last part.
pub(super) const PARTS: [&str; 3] = ["proftop", "unwind", "v4"];

/// A directory of tables.
#[derive(Debug)]
pub struct Cache {
    directory: BoundedDirectory,
    hits: AtomicU64,
}

/// What a table is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    name: String,
    /// In full, to be compared when the name is only a hash.
    text: String,
}

impl CacheKey {
    /// By build-id. What has none, as all that rustc links, by the file and the
    /// time of its change; `None` while it changes, and for what must not be kept: see
    /// [`Proof`].
    pub fn of(object: &Object) -> Option<Self> {
        let (id, file_bytes) = (object.file_id().ok()?, object.source().len());
        let by_id = |proof: &Proof| match proof {
            Proof::Writers => Self::by_id(&id, file_bytes),
            Proof::Revisions(_) => None,
        };
        let proof = Proof::of(&[object.source()])?;
        by_id(&proof).or_else(|| {
            let text = format!("{id} {}", Proof::by_revisions(&[object.source()])?);
            let name = format!("file-{:016x}", checksum::of(text.as_bytes()));
            Some(Self { name, text })
        })
    }

    /// In full.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `None` for files that are told apart by a part of their content only.
    ///
    /// The length is there for those who give all their builds one id.
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
    /// Where the cache is by default.
    pub fn default_base() -> Option<PathBuf> {
        cache_directory::default_base()
    }

    /// Opens the cache below `base`, and makes it if it is not there.
    pub fn open(base: &Path, bytes_max: u64) -> io::Result<Self> {
        let directory = Directory::open(base, &PARTS)?;
        Ok(Self {
            directory: BoundedDirectory::new(directory, bytes_max),
            hits: AtomicU64::new(0),
        })
    }

    /// The table that was stored under this key, if it is still whole.
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

    /// Keeps a table for later runs, if that can be done.
    pub fn store(&self, key: &CacheKey, table: &FileTable) {
        if self.directory.is_writable() {
            let bytes = format::encode(table, &key.text);
            self.directory.store(&key.name, &bytes);
        }
    }

    /// Tables that were found.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Files that were not whole.
    pub fn damaged(&self) -> u64 {
        self.directory.damaged()
    }
}

#[cfg(test)]
mod tests;
