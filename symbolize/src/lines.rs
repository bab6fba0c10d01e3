//! The lines of one file, in two stages: unit by unit on demand, then from a table of the whole
//! file, which later runs find on disk.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Segments;
use crate::debug_file::DebugFiles;
use crate::dwarf::DebugInfo;
use crate::object::Object;
use crate::table::{Extras, Table};
use crate::table_cache::{TableCache, TableKey, WholeTable};
use crate::{FileOffset, LinkAddr, OpenError};

/// The source of a file's lines.
#[derive(Debug)]
pub struct Lines {
    segments: Segments,
    table: WholeTable,
    /// The debug information, until there is a table of the whole file.
    info: Mutex<Option<Arc<DebugInfo>>>,
    /// When the debug information was last used.
    asked: Mutex<Instant>,
}

impl Lines {
    /// Finds the debug information of a file, or its table in the cache. `None` if it has none; an
    /// error if more than `bytes_max` of it would have to be in memory.
    pub fn open(
        main: &Object,
        files: DebugFiles,
        cache: Option<&TableCache>,
        bytes_max: u64,
    ) -> Result<Option<Lines>, OpenError> {
        let separate = separate(main, &files);
        Lines::with_separate(main, separate, files, cache, bytes_max)
    }

    /// Opens the lines of a file when it is already known whether, and in which file, there is
    /// separate debug information.
    pub(crate) fn with_separate(
        main: &Object,
        separate: Option<Object>,
        files: DebugFiles,
        cache: Option<&TableCache>,
        bytes_max: u64,
    ) -> Result<Option<Lines>, OpenError> {
        let object = separate.as_ref().unwrap_or(main);
        // A parser process has no cache, and may not even ask as which user it runs, which a key
        // depends on.
        let key = cache.and_then(|_| TableKey::new(main, object));
        let table = WholeTable::find(key, cache);
        let info = if table.is_there() {
            None
        } else {
            let Some(info) = DebugInfo::read(object, files, bytes_max)? else {
                return Ok(None);
            };
            Some(Arc::new(info))
        };
        Ok(Some(Lines {
            segments: main.segments().clone(),
            table,
            info: Mutex::new(info),
            asked: Mutex::new(Instant::now()),
        }))
    }

    /// Uses the table of a file's lines that is in the cache. An error if it has another key.
    pub(crate) fn of_table(main: &Object, table: File, key: &[u8]) -> Result<Lines, OpenError> {
        let table = Table::from_file(table)?;
        if table.key() != key {
            return Err(OpenError::Damaged("a table of lines"));
        }
        let whole = WholeTable::find(None, None);
        whole.set(table);
        Ok(Lines {
            segments: main.segments().clone(),
            table: whole,
            info: Mutex::new(None),
            asked: Mutex::new(Instant::now()),
        })
    }

    /// Returns the table with the code at `offset`, and its address in the table. Reads at most one
    /// unit.
    pub fn find(&self, offset: FileOffset) -> Option<(Arc<Table>, LinkAddr)> {
        let addr = self.segments.to_link(offset)?;
        if let Some(table) = self.table.get() {
            return Some((Arc::clone(table), addr));
        }
        let info = self.info()?;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Some((info.table_at(addr)?, addr))
    }

    /// Returns the table of the whole file. Reads all units, if that was not done.
    pub fn whole(&self, threads: usize) -> Result<Option<Arc<Table>>, OpenError> {
        self.finish(None, threads)?;
        Ok(self.table.get().cloned())
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
        self.info().map_or(0, |info| info.bytes())
    }

    /// Reads all units, stores their table, on disk if possible, and drops the debug information.
    pub fn finish(&self, cache: Option<&TableCache>, threads: usize) -> Result<(), OpenError> {
        let Some(info) = self.info().filter(|_| !self.is_finished()) else {
            return Ok(());
        };
        let extras = self.extras(self.table.key_bytes());
        let make = |file: &mut dyn Write| info.build_to(&extras, threads, file);
        let table = match self.table.keep(cache, make)? {
            Some(table) => table,
            None => Table::from_bytes(info.build(&extras, threads)?)?,
        };
        self.table.set(table);
        *self.info.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Writes the table of the whole file for another process, which stores it with that key.
    pub(crate) fn write_whole(&self, key: &[u8], file: &mut dyn Write) -> Result<(), OpenError> {
        match self.info() {
            Some(info) => info.build_to(&self.extras(key), 1, file),
            None => Err(OpenError::Refused("a table that was made already")),
        }
    }

    fn extras<'a>(&'a self, key: &'a [u8]) -> Extras<'a> {
        Extras {
            key,
            segments: Some(&self.segments),
            ..Extras::default()
        }
    }

    /// Drops the units that were read, if none was used for so long. Returns whether nothing is
    /// left to drop.
    pub fn forget_units(&self, unused_for: Duration) -> bool {
        let Some(info) = self.info() else {
            return true;
        };
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = asked.elapsed() >= unused_for;
        if is_unused {
            info.forget_units();
        }
        is_unused
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() + self.info().map_or(0, |info| info.heap_bytes())
    }

    fn info(&self) -> Option<Arc<DebugInfo>> {
        let info = self.info.lock().unwrap_or_else(PoisonError::into_inner);
        info.clone()
    }
}

/// The file with the debug information of `main`, if it is another file.
pub(crate) fn separate(main: &Object, files: &DebugFiles) -> Option<Object> {
    if main.has_debug_info() {
        return None;
    }
    files.separate(main)
}

/// Whether a separate debug file for `main` would add something.
pub(crate) fn lacks_debug_file(main: &Object, files: &DebugFiles) -> bool {
    !main.has_debug_info() && files.separate(main).is_none()
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Lines>();
};
