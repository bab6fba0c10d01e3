//! The *difference* from a baseline, function by function. Functions that grew significantly come
//! first. The selection belongs to a function, whatever row it is on.

pub mod draw;
use crate::lists::cursor::{Cursor, visible};
use crate::lists::motion::Motion;
use profile::diff::{Diff, DiffRow};
use std::collections::HashMap;
use std::sync::Arc;

/// Identifies a function on both sides: name, module, and its number among the functions with the
/// same name and module.
type Name = (Arc<str>, Arc<str>, u32);

/// The state of the list: its order and its selection. The rows are in the [`Diff`].
#[derive(Debug, Default)]
pub struct Difference {
    /// A number for each function that was ever in the list, because a cursor needs keys that can
    /// be copied.
    known: HashMap<Name, u32>,
    cursor: Cursor<u32>,
    /// The keys of the rows, in the order of the difference.
    keys: Vec<u32>,
    height: usize,
}

impl Difference {
    /// Takes the order of a new difference. The selected function stays selected on its new row. If
    /// it is gone, the first row is selected.
    pub fn update(&mut self, diff: &Diff) {
        let mut seen: HashMap<(Arc<str>, Arc<str>), u32> = HashMap::new();
        let mut keys = Vec::with_capacity(diff.rows.len());
        for row in &diff.rows {
            let name = (Arc::clone(&row.name), Arc::clone(&row.module));
            let nth = seen.entry(name.clone()).or_default();
            let next = self.known.len() as u32;
            let key = self.known.entry((name.0, name.1, *nth)).or_insert(next);
            keys.push(*key);
            *nth += 1;
        }
        self.keys = keys;
        self.cursor.settle(&self.keys, self.height);
    }

    /// Sets the number of lines of the list.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.cursor.settle(&self.keys, height);
    }

    /// Returns the number of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Whether the user has selected a row. Otherwise the first row is selected, whatever function
    /// it has.
    pub fn is_held(&self) -> bool {
        self.cursor.held().is_some()
    }

    /// Returns the number of the selected row, counted from 0 in the order of the difference.
    pub fn index(&self) -> usize {
        self.cursor.index()
    }

    /// Returns how many rows fit on the screen: one less if the last line has to sum up the rows
    /// below.
    pub fn visible(&self) -> usize {
        visible(self.keys.len(), self.height)
    }

    /// Returns the selected row of the difference that was last passed to `update`, or `None` if
    /// there are no rows.
    pub fn selected<'a>(&self, diff: &'a Diff) -> Option<&'a DiffRow> {
        diff.rows.get(self.cursor.index())
    }

    /// Moves the selection. Moving up from the first row releases the selected function: from then
    /// on the first row is selected, whatever function it has.
    pub fn go(&mut self, motion: Motion) {
        let at = self.cursor.index();
        if motion.watches_top(at) {
            return self.cursor.watch_top();
        }
        let target = motion.target(at, self.visible(), self.keys.len());
        self.cursor.select(target, &self.keys, self.height);
    }

    /// Selects the row on a line of the list, counted from 0 at the top. The line of the sum cannot
    /// be selected.
    pub fn select_line(&mut self, line: usize) {
        if line < self.visible() {
            let at = self.offset() + line;
            self.cursor.select(at, &self.keys, self.height);
        }
    }
}
