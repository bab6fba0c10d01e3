//! Makes the table of a file from its unwind information.

use crate::tables::file_table::FileTable;
use crate::tables::no_table::NoTable;
use symbolize::OpenError;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::unwind::UnwindTable;

/// A newly made table.
pub struct Made {
    pub table: FileTable,
    /// Whether all files that belong to it were available.
    pub is_complete: bool,
}

/// Makes the table of a file from its unwind information, and from that of its debug file, which is
/// looked up in `places`.
pub fn make(object: &Object, places: Option<&DebugFiles>) -> Result<Made, NoTable> {
    let read = match places {
        Some(places) => UnwindTable::read_mapped(object, places),
        None => UnwindTable::read(object).map(|table| (table, true)),
    };
    let (unwind, is_complete) = read.map_err(no_table)?;
    let table = FileTable::build(unwind.rows(), unwind.rules(), object.segments())?;
    Ok(Made { table, is_complete })
}

/// Converts the error of a file to the reason why there is no table.
pub fn no_table(error: OpenError) -> NoTable {
    match error {
        OpenError::Read { .. } | OpenError::Write { .. } => NoTable::Unreadable,
        OpenError::NotElf | OpenError::Damaged(_) => NoTable::Damaged,
        OpenError::Unsupported => NoTable::UnsupportedMachine,
        OpenError::Refused(_) => NoTable::TooLarge,
    }
}
