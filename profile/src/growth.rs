//! Growing a large table by a quarter instead of to the double: one of a
//! hundred megabytes should not sit on a hundred more.

/// Small tables grow by at least so many entries.
const STEP_MIN: usize = 1024;

/// Makes room for `more` entries.
#[inline]
pub(crate) fn reserve<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more {
        table.reserve_exact(table.len() / 4 + more + STEP_MIN);
    }
}
