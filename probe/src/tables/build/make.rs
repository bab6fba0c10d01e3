//! From the unwind information of a file to its table.

use crate::tables::file_table::FileTable;
use crate::tables::no_table::NoTable;
use symbolize::OpenError;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::unwind::UnwindTable;

/// A table that was made anew.
pub struct Made {
    pub table: FileTable,
    /// Whether everything was there that has to do with it.
    pub is_complete: bool,
}

/// Makes the table of a file from its unwind information, and from that of its debug file among
/// `places`.
pub fn make(object: &Object, places: Option<&DebugFiles>) -> Result<Made, NoTable> {
    let read = match places {
        Some(places) => UnwindTable::read_mapped(object, places),
        None => UnwindTable::read(object).map(|table| (table, true)),
    };
    let (unwind, is_complete) = read.map_err(no_table)?;
    let table = FileTable::build(unwind.rows(), unwind.rules(), object.segments())?;
    Ok(Made { table, is_complete })
}

/// What it means for a table that a file could not be read.
pub fn no_table(error: OpenError) -> NoTable {
    match error {
        OpenError::Read { .. } | OpenError::Write { .. } => NoTable::Unreadable,
        OpenError::NotElf | OpenError::Damaged(_) => NoTable::Damaged,
        OpenError::Unsupported => NoTable::UnsupportedMachine,
        OpenError::Refused(_) => NoTable::TooLarge,
    }
}
