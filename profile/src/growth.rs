//! Growing a large table by a quarter instead of to the double: one of a
//! hundred megabytes should not sit on a hundred more.

/// Small tables grow by at least so many entries.
const STEP_MIN: usize = 1024;

/// Makes room for `more` entries.
#[inline]
pub(crate) fn reserve<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more {
        table.reserve_exact(with_room(table.len(), more) - table.len());
    }
}

/// The capacity that a table of `len` grows to if it wants `more` entries.
pub(crate) fn with_room(len: usize, more: usize) -> usize {
    len + len / 4 + more + STEP_MIN
}
