//! *Tables that are shared with views*: written by the store, read by any
//! number of views. A view holds a table as it was; the store copies it when it
//! writes again, once per view and only if it changed.

use crate::growth;
use std::sync::Arc;

/// The table, to be changed in place.
#[inline]
pub(crate) fn write<T: Clone>(table: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    Arc::make_mut(table)
}

/// The table with room for `more` entries: a copy is made with that room, not
/// grown afterwards.
pub(crate) fn grow<T: Clone>(table: &mut Arc<Vec<T>>, more: usize) -> &mut Vec<T> {
    if Arc::get_mut(table).is_none() {
        let mut copy = Vec::with_capacity(growth::with_room(table.len(), more));
        copy.extend_from_slice(table);
        *table = Arc::new(copy);
    }
    let table = Arc::make_mut(table);
    growth::reserve(table, more);
    table
}
