//! Growth of large tables by a quarter of their size instead of doubling: a table of a hundred
//! megabytes should not reserve a hundred more.

/// Small tables grow by at least this many entries.
const STEP_MIN: usize = 1024;

/// Makes room for `more` entries.
#[inline]
pub(crate) fn reserve<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more {
        table.reserve_exact(with_room(table.len(), more) - table.len());
    }
}

/// Returns the new capacity of a table of `len` entries that needs room for `more`.
pub(crate) fn with_room(len: usize, more: usize) -> usize {
    len + len / 4 + more + STEP_MIN
}
