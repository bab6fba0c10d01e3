//! Range tables of earlier runs on disk, identified by the file and by the file with its debug
//! information.
//!
//! The cache may be lost, damaged, full or shared at any moment: then units are read again. Only
//! its owner may read or write it, because its contents decide what profiles say.

use crate::crc::crc32;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::cache_directory::{BoundedDirectory, Directory, Proof};
use crate::object::Object;
use crate::source::Source;
use crate::table::Table;
use crate::{FileId, OpenError};

/// Default limit for all files together: enough for the debug information of some dozens of large
/// programs.
pub const BYTES_MAX: u64 = 2 << 30;

/// Maximum size of a file, larger than any known table.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Directories below the base; another format gets another last one.
const PARTS: [&str; 3] = ["proftop", "symbols", "v5"];

/// A directory of tables.
#[derive(Debug)]
pub struct TableCache {
    directory: BoundedDirectory,
}

/// The key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableKey {
    name: String,
    text: String,
}

impl TableKey {
    /// Makes the key for a program and the file with its debug information. `None` for programs
    /// that are identified by a part of their contents only, and for those that must not be cached:
    /// see [`Proof`].
    pub fn new(main: &Object, debug: &Object) -> Option<TableKey> {
        TableKey::of(&main.file_id().ok()?, main.source(), debug.source())
    }

    /// Makes a key from an identity that another process has read. If that process lied, the table
    /// is never used for files of other users.
    pub(crate) fn of(id: &FileId, main: &Source, debug: &Source) -> Option<TableKey> {
        let (program, source) = (main.len(), debug.len());
        let proof = Proof::of(&[main, debug])?;
        let text = format!("{id} {program} {source} {proof}");
        let hash = crc32(text.as_bytes());
        let name = match (id, &proof) {
            (FileId::Gnu(id), Proof::Writers) if id.as_bytes().len() >= 8 => {
                format!("{id}-{program:x}-{source:x}")
            }
            (FileId::Go(_), Proof::Writers) => format!("go-{hash:08x}-{program:x}-{source:x}"),
            (_, Proof::Revisions(_)) => format!("file-{hash:08x}-{program:x}-{source:x}"),
            (FileId::Gnu(_) | FileId::Content { .. }, Proof::Writers) => return None,
        };
        Some(TableKey { name, text })
    }

    /// The name of the table's file, and of what else is kept about it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The whole key, to be compared because the file name is only a hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The table of a whole file, once it exists, and its key.
#[derive(Debug)]
pub(crate) struct WholeTable {
    key: Option<TableKey>,
    table: OnceLock<Arc<Table>>,
}

impl WholeTable {
    /// Loads the table that an earlier run stored, if there is one.
    pub(crate) fn find(key: Option<TableKey>, cache: Option<&TableCache>) -> WholeTable {
        let kept = cache.zip(key.as_ref());
        let table = kept.and_then(|(cache, key)| cache.load(key));
        let table = table.map_or_else(OnceLock::new, |table| OnceLock::from(Arc::new(table)));
        WholeTable { key, table }
    }

    /// The table, if it is not damaged.
    pub(crate) fn get(&self) -> Option<&Arc<Table>> {
        self.table.get().filter(|table| !table.is_damaged())
    }

    /// Sets the table. If two were made, the first one is kept.
    pub(crate) fn set(&self, table: Table) {
        _ = self.table.set(Arc::new(table));
    }

    /// The key of the table; `None` if it cannot be stored.
    pub(crate) fn key(&self) -> Option<&TableKey> {
        self.key.as_ref()
    }

    /// The bytes of the key; empty if the table cannot be stored.
    pub(crate) fn key_bytes(&self) -> &[u8] {
        self.key.as_ref().map_or(&[], TableKey::as_bytes)
    }

    /// Whether there is a table, damaged or not.
    pub(crate) fn is_there(&self) -> bool {
        self.table.get().is_some()
    }

    /// Whether a block with a wrong checksum was found.
    pub(crate) fn is_damaged(&self) -> bool {
        self.table.get().is_some_and(|table| table.is_damaged())
    }

    /// Writes the table for later runs, if possible, while it is made, and uses the stored one:
    /// only the needed blocks of it are in memory.
    pub(crate) fn keep(
        &self,
        cache: Option<&TableCache>,
        make: impl FnOnce(&mut dyn Write) -> Result<(), OpenError>,
    ) -> Result<Option<Table>, OpenError> {
        let Some((cache, key)) = cache.zip(self.key.as_ref()) else {
            return Ok(None);
        };
        let is_kept = cache.store(key, make)?;
        Ok(is_kept.then(|| cache.load(key)).flatten())
    }

    /// Opens the table again, with no block of it in memory. `None` if it is not on disk, or cannot
    /// be read any more.
    pub(crate) fn afresh(&self) -> Option<WholeTable> {
        let file = self.get()?.on_disk()?.try_clone().ok()?;
        let table = Table::from_file(file).ok()?;
        Some(WholeTable {
            key: self.key.clone(),
            table: OnceLock::from(Arc::new(table)),
        })
    }

    /// Bytes of heap in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.get().map_or(0, |table| table.heap_bytes())
    }
}

impl TableCache {
    /// Opens the cache of lines below `base`, and creates it if it does not exist.
    pub fn open(base: &Path, bytes_max: u64) -> io::Result<TableCache> {
        TableCache::open_at(base, &PARTS, bytes_max)
    }

    /// Opens a cache of other tables in `base/parts…`, and creates it if it does not exist.
    pub(crate) fn open_at(base: &Path, parts: &[&str], bytes_max: u64) -> io::Result<TableCache> {
        let directory = Directory::open(base, parts)?;
        let directory = BoundedDirectory::new(directory, bytes_max);
        Ok(TableCache { directory })
    }

    /// Loads the table with this key, if it is not damaged.
    pub fn load(&self, key: &TableKey) -> Option<Table> {
        let table = Table::from_file(self.open_unread(key)?).ok();
        let table = table.filter(|table| table.key() == key.as_bytes());
        if table.is_none() {
            self.reject(key);
        }
        table
    }

    /// Opens the file of the table with this key, and reads nothing of it: another process does, and
    /// compares the key.
    pub(crate) fn open_unread(&self, key: &TableKey) -> Option<File> {
        let opened = self.directory.open_file(&key.name, FILE_BYTES_MAX);
        opened.ok().map(|(file, _)| file)
    }

    /// Removes a table that turned out to be damaged.
    pub fn reject(&self, key: &TableKey) {
        self.directory.reject(&key.name);
    }

    /// Stores a table for later runs, if possible, while it is made. An error if it cannot be made.
    pub fn store(
        &self,
        key: &TableKey,
        make: impl FnOnce(&mut dyn Write) -> Result<(), OpenError>,
    ) -> Result<bool, OpenError> {
        let mut failure = None;
        let is_stored = self
            .directory
            .store_with(&key.name, FILE_BYTES_MAX, |file| {
                make(file).map_err(|error| match error {
                    OpenError::Write { source } => source,
                    error => {
                        failure = Some(error);
                        io::ErrorKind::Other.into()
                    }
                })
            });
        failure.map_or(Ok(is_stored), Err)
    }

    /// Number of damaged files that were found.
    pub fn damaged(&self) -> u64 {
        self.directory.damaged()
    }
}
