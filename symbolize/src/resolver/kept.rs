//! Tables of files whose addresses are asked about in run after run, kept on disk.
//!
//! A table answers at once, but takes several times as long to make as what one run reads on
//! demand. So each run adds to a note how much it has read of a file, and the table is made when
//! all runs together have read as much as it takes. To read a file once costs no more than without
//! tables, but for the note; to read it always costs twice as much at most as if a table had been
//! made at first.
//!
//! None is made of Go programs, whose own tables answer before debug information; of files with
//! debug information in further files, which the key of a table does not name; and of stripped
//! files.

use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::OpenError;
use crate::cache_directory::{BoundedDirectory, Directory};
use crate::table::Table;
use crate::table_cache::{TableCache, TableKey};

/// Directories below the base; another format gets another last one.
const TABLES: [&str; 3] = ["proftop", "addresses", "v1"];
const NOTES: [&str; 3] = ["proftop", "addresses", "notes"];

/// Maximum size of all tables together: some twenty of large programs.
const TABLES_BYTES_MAX: u64 = 1 << 30;

/// Maximum size of all notes together: some ten thousand.
const NOTES_BYTES_MAX: u64 = 1 << 20;

/// Maximum length of a note: a number and a key.
const NOTE_BYTES_MAX: u64 = 4 << 10;

/// How many times as long it takes to make a table as to read each unit for a few addresses. By
/// measurement 2.7 (C) to 4 (Rust).
const MAKING: u64 = 4;

/// Debug information that is read in a few milliseconds; a table would save nothing that anybody
/// notices.
const INFO_BYTES_MIN: u64 = 1 << 20;

/// Debug information of which no table is made unasked, as that takes ten seconds and more.
const INFO_BYTES_MAX: u64 = 256 << 20;

/// The tables that are kept, and the notes about files that have none yet.
#[derive(Debug)]
pub struct KeptTables {
    base: PathBuf,
    /// The directories, opened when they are first needed; `None` if they cannot be.
    opened: OnceLock<Option<Opened>>,
}

#[derive(Debug)]
struct Opened {
    tables: TableCache,
    notes: BoundedDirectory,
}

impl KeptTables {
    /// Keeps tables below `base`. Opens nothing yet.
    pub fn new(base: PathBuf) -> KeptTables {
        KeptTables {
            base,
            opened: OnceLock::new(),
        }
    }

    /// Opens the directories, and creates them if they do not exist.
    fn opened(&self) -> Option<&Opened> {
        let open = || {
            let notes = Directory::open(&self.base, &NOTES).ok()?;
            Some(Opened {
                tables: TableCache::open_at(&self.base, &TABLES, TABLES_BYTES_MAX).ok()?,
                notes: BoundedDirectory::new(notes, NOTES_BYTES_MAX),
            })
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// Returns the table with this key, if there is one and it is not damaged. Creates no
    /// directory: most runs read one address, and keep nothing.
    pub(super) fn find(&self, key: &TableKey) -> Option<Table> {
        let directory = self.base.join(TABLES.iter().collect::<PathBuf>());
        if !directory.exists() {
            return None;
        }
        self.opened()?.tables.load(key)
    }

    /// Removes a table that turned out to be damaged.
    pub(super) fn reject(&self, key: &TableKey) {
        if let Some(opened) = self.opened() {
            opened.tables.reject(key);
        }
    }

    /// Adds `read`, the bytes of a file's debug information that this run has read, to the note
    /// about the file. `whole` is how many bytes it has. Returns whether all runs together have
    /// read so much that a table would have taken no longer to make.
    pub(super) fn note(&self, key: &TableKey, read: u64, whole: u64) -> bool {
        if read == 0 || !(INFO_BYTES_MIN..=INFO_BYTES_MAX).contains(&whole) {
            return false;
        }
        let read = self.read_before(key).saturating_add(read);
        self.write_note(key, read) && read >= whole.saturating_mul(MAKING)
    }

    /// Makes the table. If that fails, it is tried again when as much was read once more.
    pub(super) fn keep(
        &self,
        key: &TableKey,
        make: impl FnOnce(&mut dyn Write) -> Result<(), OpenError>,
    ) {
        if self.write_note(key, 0) {
            // Errors are ignored: the answers of this run are out, and those of others are read.
            _ = self.opened().map(|opened| opened.tables.store(key, make));
        }
    }

    /// Replaces the note about a file. Returns whether that succeeded.
    fn write_note(&self, key: &TableKey, read: u64) -> bool {
        let note = [read.to_string().as_bytes(), b" ", key.as_bytes()].concat();
        let opened = self.opened();
        opened.is_some_and(|opened| opened.notes.store(key.name(), &note))
    }

    /// Returns how much earlier runs have read; 0 if that is not known.
    fn read_before(&self, key: &TableKey) -> u64 {
        let read = || {
            let notes = &self.opened()?.notes;
            let note = notes.read(key.name(), NOTE_BYTES_MAX).ok()?;
            let (number, of) = note.split_at(note.iter().position(|byte| *byte == b' ')?);
            (&of[1..] == key.as_bytes()).then_some(())?;
            std::str::from_utf8(number).ok()?.parse().ok()
        };
        read().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use std::fs::File;

    const WHOLE: u64 = 10 << 20;

    /// The key of this program; `None`, with a message, where it could not be kept.
    fn key() -> Option<TableKey> {
        let program = File::open(std::env::current_exe().unwrap()).unwrap();
        let program = Object::read(&program).unwrap();
        let key = TableKey::new(&program, &program);
        if key.is_none() {
            test_support::skip("others can write to the test program");
        }
        key
    }

    /// Runs note that each has read so much, and make a table when that pays, which fails. Returns
    /// which of them did.
    fn making_runs(read: u64, whole: u64, runs: usize) -> Option<Vec<usize>> {
        let base = tempfile::tempdir().unwrap();
        let key = key()?;
        let makes = |_: &usize| {
            let kept = KeptTables::new(base.path().into());
            let is_due = kept.note(&key, read, whole);
            if is_due {
                kept.keep(&key, |_| Err(OpenError::Refused("a test")));
            }
            is_due
        };
        Some((0..runs).filter(makes).collect())
    }

    #[test]
    fn a_table_is_made_when_runs_have_read_as_much_as_it_takes() {
        let Some(runs) = making_runs(WHOLE, WHOLE, 4) else {
            return;
        };
        assert_eq!(runs, [3]);
        assert_eq!(making_runs(WHOLE / 2, WHOLE, 9).unwrap(), [7]);
        // What a table would have cost was read once more.
        assert_eq!(making_runs(WHOLE, WHOLE, 8).unwrap(), [3, 7]);
        assert_eq!(making_runs(0, WHOLE, 20).unwrap(), [0; 0]);
    }

    #[test]
    fn no_table_is_made_of_debug_information_that_is_too_small_or_too_large() {
        let small = INFO_BYTES_MIN - 1;
        let Some(runs) = making_runs(small, small, 20) else {
            return;
        };
        assert_eq!(runs, [0; 0]);
        let large = INFO_BYTES_MAX + 1;
        assert_eq!(making_runs(large, large, 20).unwrap(), [0; 0]);
    }

    #[test]
    fn a_note_about_another_file_or_a_broken_one_counts_for_nothing() {
        let base = tempfile::tempdir().unwrap();
        let kept = KeptTables::new(base.path().into());
        let Some(key) = key() else { return };
        let notes = &kept.opened().unwrap().notes;
        for note in ["", "7", "x ", "18446744073709551616 ", "9 another key"] {
            assert!(notes.store(key.name(), note.as_bytes()));
            assert_eq!(kept.read_before(&key), 0, "{note}");
        }
        let note = [b"9 ", key.as_bytes()].concat();
        assert!(notes.store(key.name(), &note));
        assert_eq!(kept.read_before(&key), 9);
    }
}
