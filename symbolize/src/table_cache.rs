//! Range tables of earlier runs on disk, by what the file is and where its
//! debug information is from.
//!
//! It may be lost, damaged, full or shared at any moment: then units are read
//! again. Only its owner may look into it or write to it, because what is in
//! it decides what profiles say.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::cache_directory::{BoundedDirectory, Directory, Proof};
use crate::object::Object;
use crate::source::Source;
use crate::table::Table;
use crate::{FileId, OpenError};

/// The default for all files together: the debug information of some dozens
/// of large programs.
pub const BYTES_MAX: u64 = 2 << 30;

/// Larger tables than any known.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Below the base directory; another format gets another last part.
const PARTS: [&str; 3] = ["proftop", "symbols", "v5"];

/// A directory of tables.
#[derive(Debug)]
pub struct TableCache {
    directory: BoundedDirectory,
}

/// What a table is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableKey {
    name: String,
    text: String,
}

impl TableKey {
    /// Of a program, and the file that its debug information is from. `None`
    /// for programs that are told apart by a part of their content only, and for those
    /// that must not be kept: see [`Proof`].
    pub fn new(main: &Object, debug: &Object) -> Option<TableKey> {
        TableKey::of(&main.file_id().ok()?, main.source(), debug.source())
    }

    /// The same where another process has read what identifies the program. If that is a lie, the
    /// table is found for no file of other writers.
    pub(crate) fn of(id: &FileId, main: &Source, debug: &Source) -> Option<TableKey> {
        let (program, source) = (main.len(), debug.len());
        let proof = Proof::of(&[main, debug])?;
        let text = format!("{id} {program} {source} {proof}");
        let hash = crc32fast::hash(text.as_bytes());
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

    /// In full, to be compared when the name is only a hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The table of a whole file, once there is one, and what it is kept under.
#[derive(Debug)]
pub(crate) struct WholeTable {
    key: Option<TableKey>,
    table: OnceLock<Arc<Table>>,
}

impl WholeTable {
    /// The table that an earlier run has kept, if there is one.
    pub(crate) fn find(key: Option<TableKey>, cache: Option<&TableCache>) -> WholeTable {
        let kept = cache.zip(key.as_ref());
        let table = kept.and_then(|(cache, key)| cache.load(key));
        let table = table.map_or_else(OnceLock::new, |table| OnceLock::from(Arc::new(table)));
        WholeTable { key, table }
    }

    /// The table, if it is still what was written.
    pub(crate) fn get(&self) -> Option<&Arc<Table>> {
        self.table.get().filter(|table| !table.is_damaged())
    }

    /// The table was made. Of two that were the first one stays.
    pub(crate) fn set(&self, table: Table) {
        _ = self.table.set(Arc::new(table));
    }

    /// What the table is kept under, if it can be.
    pub(crate) fn key(&self) -> Option<&TableKey> {
        self.key.as_ref()
    }

    /// The same in full; empty if it cannot be kept.
    pub(crate) fn key_bytes(&self) -> &[u8] {
        self.key.as_ref().map_or(&[], TableKey::as_bytes)
    }

    /// Whether there is the table, damaged or not.
    pub(crate) fn is_there(&self) -> bool {
        self.table.get().is_some()
    }

    /// Whether it turned out not to be what was written.
    pub(crate) fn is_damaged(&self) -> bool {
        self.table.get().is_some_and(|table| table.is_damaged())
    }

    /// Keeps the table for later runs, if that can be done, as it is made, and gives the one that was
    /// kept: of it only what is asked for is in memory.
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

    /// Bytes of heap in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.get().map_or(0, |table| table.heap_bytes())
    }
}

impl TableCache {
    /// Opens the cache below `base`, and makes it if it is not there.
    pub fn open(base: &Path, bytes_max: u64) -> io::Result<TableCache> {
        let directory = Directory::open(base, &PARTS)?;
        let directory = BoundedDirectory::new(directory, bytes_max);
        Ok(TableCache { directory })
    }

    /// The table that was stored under this key, if it is still whole.
    pub fn load(&self, key: &TableKey) -> Option<Table> {
        let (file, _) = self.directory.open_file(&key.name, FILE_BYTES_MAX).ok()?;
        let table = Table::from_file(file).ok();
        let table = table.filter(|table| table.key() == key.as_bytes());
        if table.is_none() {
            self.reject(key);
        }
        table
    }

    /// Removes a table that turned out to be damaged.
    pub fn reject(&self, key: &TableKey) {
        self.directory.reject(&key.name);
    }

    /// Keeps a table for later runs, if that can be done, as it is made. Fails if it
    /// cannot be made.
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

    /// Files that were not whole.
    pub fn damaged(&self) -> u64 {
        self.directory.damaged()
    }
}
