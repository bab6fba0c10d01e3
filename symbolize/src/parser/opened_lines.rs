//! The lines of a file, in the process that asks another one for them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kept_lines::source_line;
use super::lines_order::{self, PLACES_MAX, Subject, Wanted};
use super::names::SourceLine;
use super::opened::OpenedFile;
use crate::debug_file::DebugFiles;
use crate::error::io_reason;
use crate::files::{Reply, Work};
use crate::source::Source;
use crate::table::Table;
use crate::table_cache::{TableCache, TableKey, WholeTable};
use crate::{FileOffset, Files, OpenError, Reason};

/// Larger tables are refused: a parser cannot write more either.
const TABLE_BYTES_MAX: u64 = 65 << 20;

/// The lines of one file, which another process reads until there is a table of all of them.
#[derive(Debug)]
pub struct OpenedLines {
    opened: Arc<OpenedFile>,
    /// The file that has its debug information, if that is another one: a process that takes the
    /// place of another one is to read the same.
    separate: Option<File>,
    /// Where its debug files may lie.
    places: DebugFiles,
    /// Who has it read.
    way: Files,
    /// How much debug information may be held at once.
    bytes_max: u64,
    table: WholeTable,
    /// By the last answer.
    unread_bytes: AtomicU64,
}

impl OpenedLines {
    /// Finds the debug information of a file, and its table in the cache. None if it has no debug
    /// information.
    pub fn open(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
        cache: Option<&TableCache>,
        bytes_max: u64,
    ) -> Result<Option<OpenedLines>, Reason> {
        let mut lines = OpenedLines {
            opened,
            separate: None,
            places,
            way: way.clone(),
            bytes_max,
            table: WholeTable::find(None, None),
            unread_bytes: AtomicU64::new(0),
        };
        let reply = lines.ask(Wanted::DebugFile, &[])?;
        let program = lines_order::read_program(&reply.bytes).ok_or(Reason::Refused)?;
        let Some(id) = program else {
            return Ok(None);
        };
        lines.separate = reply.file.map(File::from);
        let source = |file: &File| Source::file(file).map_err(|error| error.reason());
        let main = source(lines.opened.file())?;
        let separate = lines.separate.as_ref().map(source).transpose()?;
        let key = TableKey::of(&id, &main, separate.as_ref().unwrap_or(&main));
        lines.table = WholeTable::find(key, cache);
        Ok(Some(lines))
    }

    /// The functions that each place stands for, innermost first; none without debug
    /// information for it.
    pub fn find_all(&self, offsets: &[FileOffset]) -> Result<Vec<Vec<SourceLine>>, Reason> {
        if let Some(table) = self.table.get() {
            let lines = |offset: &FileOffset| {
                let addr = table.to_link(*offset);
                addr.map_or_else(Vec::new, |addr| table.find(addr).map(source_line).collect())
            };
            return Ok(offsets.iter().map(lines).collect());
        }
        let mut all = Vec::with_capacity(offsets.len());
        while all.len() < offsets.len() {
            let left = &offsets[all.len()..];
            let asked = &left[..left.len().min(PLACES_MAX)];
            let reply = self.ask(Wanted::Places, asked)?;
            let told = lines_order::read_lines(&reply.bytes).ok_or(Reason::Refused)?;
            // Long names may leave no room for the last of them.
            if told.chains.is_empty() || told.chains.len() > asked.len() {
                return Err(Reason::Refused);
            }
            self.unread_bytes
                .store(told.unread_bytes, Ordering::Relaxed);
            all.extend(told.chains);
        }
        Ok(all)
    }

    /// Whether there is the table of the whole file.
    pub fn is_finished(&self) -> bool {
        self.table.is_there()
    }

    /// Whether the table turned out not to be what was written.
    pub fn is_damaged(&self) -> bool {
        self.table.is_damaged()
    }

    /// What the table is kept under, if it can be.
    pub fn key(&self) -> Option<&TableKey> {
        self.table.key()
    }

    /// Bytes of debug information still to be read, at most.
    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed) as usize
    }

    /// Has the table of the whole file made, and keeps it, on disk if that can be.
    pub fn finish(&self, cache: Option<&TableCache>) -> Result<(), Reason> {
        if self.is_finished() {
            return Ok(());
        }
        let reply = self.ask(Wanted::WholeTable, &[])?;
        let bytes = read_table(reply.file.ok_or(Reason::Refused)?.into())
            .map_err(|error| io_reason(&error))?;
        let write = |file: &mut dyn io::Write| {
            let written = file.write_all(&bytes);
            written.map_err(|source| OpenError::Write { source })
        };
        let table = match self.table.keep(cache, write) {
            Ok(Some(table)) => table,
            // What cannot be kept is of use all the same.
            Ok(None) | Err(_) => Table::from_bytes(bytes).map_err(|error| error.reason())?,
        };
        self.table.set(table);
        self.unread_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    fn ask(&self, wanted: Wanted, offsets: &[FileOffset]) -> Result<Reply, Reason> {
        let subject = Subject {
            file: self.opened.file(),
            separate: self.separate.as_ref(),
            places: &self.places,
            bytes_max: self.bytes_max,
            key: self.table.key_bytes(),
        };
        let (message, files) = lines_order::write(wanted, subject, offsets);
        self.opened.order(&self.way, Work::Lines, &files, &message)
    }
}

/// Reads a table, which nobody can change afterwards.
fn read_table(mut table: File) -> io::Result<Vec<u8>> {
    table.rewind()?;
    let mut bytes = Vec::new();
    table.take(TABLE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
