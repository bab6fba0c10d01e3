//! The *difference* to a baseline, function by function: what surely grew
//! comes first. A selection belongs to the function, whichever row it is on.

pub mod draw;
use crate::lists::cursor::{Cursor, visible};
use crate::lists::motion::Motion;
use profile::diff::{Diff, DiffRow};
use std::collections::HashMap;
use std::sync::Arc;

/// Identifies a function on both sides: name, module, and its number among the functions that
/// have both in common.
type Name = (Arc<str>, Arc<str>, u32);

/// The state of the list: its order, and what is selected in it. The rows are in the [`Diff`].
#[derive(Debug, Default)]
pub struct Difference {
    /// A number for each function there ever was in the list, as cursors hold small keys.
    known: HashMap<Name, u32>,
    cursor: Cursor<u32>,
    /// The keys of the rows, in the order of the difference.
    keys: Vec<u32>,
    height: usize,
}

impl Difference {
    /// Takes the order of a new difference. The selected function stays selected on its new
    /// row; if it is gone, the first row is selected.
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

    /// Sets how many lines the list has.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.cursor.settle(&self.keys, height);
    }

    /// Returns the number of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Whether the user selected a row; else the first row is selected, whichever it is.
    pub fn is_held(&self) -> bool {
        self.cursor.held().is_some()
    }

    /// Returns the number of the selected row, from 0 in the order of the difference.
    pub fn index(&self) -> usize {
        self.cursor.index()
    }

    /// How many rows fit the screen: one less if the last line has to sum up the others.
    pub fn visible(&self) -> usize {
        visible(self.keys.len(), self.height)
    }

    /// Returns the selected row of the difference that was passed to `update` last; None if it
    /// has no rows.
    pub fn selected<'a>(&self, diff: &'a Diff) -> Option<&'a DiffRow> {
        diff.rows.get(self.cursor.index())
    }

    /// Moves the selection. Going up from the first row deselects: the first row stays
    /// selected, whichever function is there.
    pub fn go(&mut self, motion: Motion) {
        let at = self.cursor.index();
        if motion.watches_top(at) {
            return self.cursor.watch_top();
        }
        let target = motion.target(at, self.visible(), self.keys.len());
        self.cursor.select(target, &self.keys, self.height);
    }

    /// Selects the row on a line of the list, from 0 at the top; nothing on the line of the
    /// sum.
    pub fn select_line(&mut self, line: usize) {
        if line < self.visible() {
            let at = self.offset() + line;
            self.cursor.select(at, &self.keys, self.height);
        }
    }
}
