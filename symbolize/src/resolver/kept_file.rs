//! A file for which a kept table answers.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::late_file::LateFile;
use super::{KeptTables, Resolver};
use crate::OpenError;
use crate::table::Table;
use crate::table_cache::TableKey;

/// A kept table, and the file that it was made of. The blocks of a table are compared with their
/// checksums when they are first read: if one is damaged, the file is read after all.
#[derive(Debug)]
pub struct KeptFile {
    id: String,
    table: Table,
    key: TableKey,
    /// The file; `None` once it was read.
    unread: Mutex<Option<LateFile>>,
    /// The file, read because the table is damaged; `None` if it cannot be read.
    read: OnceLock<Option<Resolver>>,
}

impl KeptFile {
    /// Uses a table instead of the file.
    pub fn new(file: LateFile, table: Table, key: TableKey) -> Result<Box<KeptFile>, OpenError> {
        Ok(Box::new(KeptFile {
            id: file.main.file_id()?.to_string(),
            table,
            key,
            unread: Mutex::new(Some(file)),
            read: OnceLock::new(),
        }))
    }

    /// The identity of the file.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the file itself if a damaged block was found in the table; `None` as long as there
    /// was none.
    pub fn file_if_damaged(&self) -> Option<&Resolver> {
        if !self.table.is_damaged() {
            return None;
        }
        let read = || {
            let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
            unread.take()?.read(None).ok()
        };
        self.read.get_or_init(read).as_ref()
    }

    /// Removes the table if it is damaged.
    pub fn reject_if_damaged(&self, kept: &KeptTables) {
        if self.table.is_damaged() {
            kept.reject(&self.key);
        }
    }
}
