//! *Tables that are shared with views*: written by the store, read by any
//! number of views. A view holds a table as it was; the store copies it when it
//! writes again, once per view and only if it changed.

use crate::growth;
use std::sync::Arc;

/// Returns the table for writing in place; copies it first if a view still shares it.
#[inline]
pub(crate) fn write<T: Clone>(table: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    Arc::make_mut(table)
}

/// Returns the table for writing, with room for `more` entries. If the table has to be copied, the
/// copy is allocated with that room instead of growing later.
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
