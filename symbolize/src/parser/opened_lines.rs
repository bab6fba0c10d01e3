//! The lines of a file, on the asking side.

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

/// Maximum size of a table: a parser cannot write a larger one either.
const TABLE_BYTES_MAX: u64 = 65 << 20;

/// The lines of one file, which another process reads until there is a table of all of them.
#[derive(Debug)]
pub struct OpenedLines {
    opened: Arc<OpenedFile>,
    /// The file with its debug information, if it is another one: a process that replaces another
    /// one has to read the same file.
    separate: Option<File>,
    /// Where its debug files may be.
    places: Arc<DebugFiles>,
    /// Sends the questions to a parser process.
    way: Files,
    /// Maximum memory of debug information.
    bytes_max: u64,
    table: WholeTable,
    /// Bytes that are still to be read, from the last answer.
    unread_bytes: AtomicU64,
}

impl OpenedLines {
    /// Finds the debug information of a file, and its table in the cache. `None` if it has no debug
    /// information.
    pub fn open(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
        cache: Option<&TableCache>,
        bytes_max: u64,
    ) -> Result<Option<OpenedLines>, Reason> {
        let mut lines = OpenedLines::unread(opened, places, way, bytes_max);
        let reply = lines.ask(Wanted::DebugFile, &[])?;
        let Some(place) = read_place(reply, lines.opened.file())? else {
            return Ok(None);
        };
        lines.separate = place.separate;
        lines.table = WholeTable::find(place.key, cache);
        Ok(Some(lines))
    }

    /// Whether a separate debug file would add something to a file.
    pub fn lacks_debug_file(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
    ) -> Result<bool, Reason> {
        let reply = OpenedLines::unread(opened, places, way, 0).ask(Wanted::IsLacking, &[])?;
        Ok(reply.bytes == [1])
    }

    /// The lines of a file of which nothing is known yet.
    fn unread(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
        bytes_max: u64,
    ) -> OpenedLines {
        OpenedLines {
            opened,
            separate: None,
            places: Arc::new(places),
            way: way.clone(),
            bytes_max,
            table: WholeTable::find(None, None),
            unread_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the functions at each place, innermost first; empty if the debug information has
    /// none.
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
            // If names are long, the answer may lack the last ones.
            if told.chains.is_empty() || told.chains.len() > asked.len() {
                return Err(Reason::Refused);
            }
            self.unread_bytes
                .store(told.unread_bytes, Ordering::Relaxed);
            all.extend(told.chains);
        }
        Ok(all)
    }

    /// Whether the table of the whole file exists.
    pub fn is_finished(&self) -> bool {
        self.table.is_there()
    }

    /// Whether the table on disk turned out to differ from what was written.
    pub fn is_damaged(&self) -> bool {
        self.table.is_damaged()
    }

    /// The key of the table in the cache; `None` if it cannot be stored there.
    pub fn key(&self) -> Option<&TableKey> {
        self.table.key()
    }

    /// Maximum number of bytes of debug information that are still to be read.
    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Ordering::Relaxed) as usize
    }

    /// Has the table of the whole file made, and stores it, on disk if possible.
    pub fn finish(&self, cache: Option<&TableCache>) -> Result<(), Reason> {
        if self.is_finished() {
            return Ok(());
        }
        let reply = self.ask(Wanted::WholeTable, &[])?;
        let made = File::from(reply.file.ok_or(Reason::Refused)?);
        let write = |file: &mut dyn io::Write| {
            let copied = copy_table(&made, file);
            copied.map_err(|source| OpenError::Write { source })
        };
        let table = match self.table.keep(cache, write) {
            Ok(Some(table)) => table,
            // A table that cannot be stored is used all the same.
            Ok(None) | Err(_) => {
                let mut bytes = Vec::new();
                copy_table(&made, &mut bytes).map_err(|error| io_reason(&error))?;
                bytes.shrink_to_fit();
                Table::from_bytes(bytes).map_err(|error| error.reason())?
            }
        };
        self.table.set(table);
        self.unread_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the same lines with none of the table in memory. `None` if the table is not on disk,
    /// or cannot be opened again.
    pub fn afresh(&self) -> Option<OpenedLines> {
        let separate = self.separate.as_ref().map(File::try_clone).transpose();
        Some(OpenedLines {
            opened: Arc::clone(&self.opened),
            separate: separate.ok()?,
            places: Arc::clone(&self.places),
            way: self.way.clone(),
            bytes_max: self.bytes_max,
            table: self.table.afresh()?,
            unread_bytes: AtomicU64::new(0),
        })
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

/// Where the lines of a program are.
#[derive(Debug, Default)]
pub struct LinesPlace {
    /// The file with the debug information, if it is another one than the program.
    pub separate: Option<File>,
    /// The key of the table in the cache; `None` if it cannot be there.
    pub key: Option<TableKey>,
}

/// Reads the answer to [`Wanted::DebugFile`]. `None` if there is no debug information.
pub fn read_place(reply: Reply, program: &File) -> Result<Option<LinesPlace>, Reason> {
    let told = lines_order::read_program(&reply.bytes).ok_or(Reason::Refused)?;
    let Some(id) = told else {
        return Ok(None);
    };
    let separate = reply.file.map(File::from);
    let source = |file: &File| Source::file(file).map_err(|error| error.reason());
    let main = source(program)?;
    let debug = separate.as_ref().map(source).transpose()?;
    let key = TableKey::of(&id, &main, debug.as_ref().unwrap_or(&main));
    Ok(Some(LinesPlace { separate, key }))
}

/// Copies a table from a file in memory that can no longer be changed, piece by piece: it may be
/// half as large as the program.
fn copy_table(mut table: &File, into: &mut dyn io::Write) -> io::Result<()> {
    table.rewind()?;
    io::copy(&mut table.take(TABLE_BYTES_MAX), into)?;
    Ok(())
}
