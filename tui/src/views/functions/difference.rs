//! The *difference* to a baseline, function by function: what changed most
//! comes first. A selection belongs to the function, whichever row it is on.

pub mod draw;
use crate::lists::cursor::{Cursor, visible};
use crate::lists::motion::Motion;
use profile::diff::{Diff, DiffRow};
use std::collections::HashMap;
use std::sync::Arc;

/// What a function is known by on both sides: name, module, and which of those
/// that share them.
type Name = (Arc<str>, Arc<str>, u32);

#[derive(Debug, Default)]
pub struct Difference {
    /// Numbers that cursors can hold.
    known: HashMap<Name, u32>,
    cursor: Cursor<u32>,
    /// The keys of the rows, in the order of the difference.
    keys: Vec<u32>,
    height: usize,
}

impl Difference {
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

    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.cursor.settle(&self.keys, height);
    }

    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Something was selected on purpose.
    pub fn is_held(&self) -> bool {
        self.cursor.held().is_some()
    }

    pub fn index(&self) -> usize {
        self.cursor.index()
    }

    /// How many rows are on the screen.
    pub fn visible(&self) -> usize {
        visible(self.keys.len(), self.height)
    }

    pub fn selected<'a>(&self, diff: &'a Diff) -> Option<&'a DiffRow> {
        diff.rows.get(self.cursor.index())
    }

    pub fn go(&mut self, motion: Motion) {
        let at = self.cursor.index();
        if motion.watches_top(at) {
            return self.cursor.watch_top();
        }
        let target = motion.target(at, self.visible(), self.keys.len());
        self.cursor.select(target, &self.keys, self.height);
    }

    pub fn select_line(&mut self, line: usize) {
        if line < self.visible() {
            let at = self.offset() + line;
            self.cursor.select(at, &self.keys, self.height);
        }
    }
}
