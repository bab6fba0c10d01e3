//! A table in pieces of [`PIECE`] entries that is shared with views.
//!
//! A view holds the table as it was. When the store writes an entry, it copies only the piece that
//! the entry is in, once per view: most tables change in few places from one view to the next.

use std::ops::Index;
use std::sync::Arc;

/// Number of entries of a piece.
pub(crate) const PIECE: usize = 1024;

/// A table whose clones share all pieces that neither of them has changed since.
#[derive(Debug, Clone)]
pub struct Pieces<T> {
    /// Entries beyond the length have default values.
    pieces: Vec<Arc<[T; PIECE]>>,
    len: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Pieces<T> {
    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the entry at that place; `None` if it is beyond the end.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        if at < self.len {
            Some(&self.pieces[at / PIECE][at % PIECE])
        } else {
            None
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        (0..self.len).map(|at| &self.pieces[at / PIECE][at % PIECE])
    }

    /// Returns the entry at that place; the default value beyond the end.
    #[inline]
    pub(crate) fn value(&self, at: usize) -> T
    where
        T: Copy + Default,
    {
        match self.pieces.get(at / PIECE) {
            Some(piece) => piece[at % PIECE],
            None => T::default(),
        }
    }

    /// Returns `len` entries from `start` on, which are all in one piece.
    #[inline]
    pub(crate) fn run(&self, start: usize, len: usize) -> &[T] {
        match self.pieces.get(start / PIECE) {
            Some(piece) => &piece[start % PIECE..][..len],
            None => &[],
        }
    }

    /// Memory of all entries, those of shared pieces included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pieces.len() * (size_of::<[T; PIECE]>() + size_of::<Arc<T>>())
    }
}

impl<T: Clone + Default> Pieces<T> {
    /// Adds an entry at the end.
    pub(crate) fn push(&mut self, entry: T) {
        if self.len == self.pieces.len() * PIECE {
            let piece = std::array::from_fn(|_| T::default());
            self.pieces.push(Arc::new(piece));
        }
        self.len += 1;
        *self.write(self.len - 1) = entry;
    }

    /// Returns an entry for writing. Its piece is copied if a view shares it.
    #[inline]
    pub(crate) fn write(&mut self, at: usize) -> &mut T {
        assert!(at < self.len, "{at} is beyond the end");
        &mut Arc::make_mut(&mut self.pieces[at / PIECE])[at % PIECE]
    }

    /// Makes the table so long; new entries have the default value.
    pub(crate) fn resize(&mut self, len: usize) {
        while self.len < len {
            self.push(T::default());
        }
        while self.len > len {
            self.pop();
        }
    }

    /// Removes the last entry, if there is one.
    pub(crate) fn pop(&mut self) {
        let Some(last) = self.len.checked_sub(1) else {
            return;
        };
        *self.write(last) = T::default();
        self.len = last;
        self.pieces.truncate(last.div_ceil(PIECE));
    }
}

impl<T: PartialEq> Pieces<T> {
    /// Whether it begins with all entries of another table.
    pub(crate) fn starts_with(&self, other: &Self) -> bool {
        other.len <= self.len && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        // Not checked in each build: queries look up each frame of each stack. Beyond the length
        // are default values.
        debug_assert!(at < self.len, "{at} is beyond the end");
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<T: Clone + Default> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut table = Self::default();
        for entry in entries {
            table.push(entry);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::Random;

    #[test]
    fn a_table_and_its_clones_are_what_they_were() {
        let mut random = Random::new(1);
        let mut table: Pieces<u64> = Pieces::default();
        let mut same: Vec<u64> = Vec::new();
        let mut clones = Vec::new();
        for _ in 0..50 {
            for _ in 0..random.below(400) {
                let value = random.number();
                match random.below(8) {
                    0 if !same.is_empty() => {
                        let at = random.index(same.len());
                        same[at] = value;
                        *table.write(at) = value;
                    }
                    1 => {
                        same.pop();
                        table.pop();
                    }
                    _ => {
                        same.push(value);
                        table.push(value);
                    }
                }
            }
            clones.push((table.clone(), same.clone()));
        }
        for (table, same) in clones {
            assert!(table.iter().eq(&same));
            assert_eq!((table.len(), table.get(same.len())), (same.len(), None));
            let first = &same[..same.len() / 2];
            assert!(table.starts_with(&first.iter().copied().collect()));
        }
    }

    #[test]
    fn writing_copies_one_piece() {
        let mut table: Pieces<u32> = (0..10 * PIECE as u32).collect();
        let view = table.clone();
        *table.write(3 * PIECE + 1) = 7;
        let shared = table.pieces.iter().zip(&view.pieces);
        let copied = shared.filter(|(ours, its)| !Arc::ptr_eq(ours, its));
        assert_eq!(copied.count(), 1);
        assert_eq!(view[3 * PIECE + 1], 3 * PIECE as u32 + 1);
        assert_eq!(table.run(3 * PIECE, 2), [3 * PIECE as u32, 7]);
    }

    #[test]
    fn beyond_the_end_are_default_values() {
        let mut table: Pieces<u32> = (5..8).collect();
        table.pop();
        assert_eq!([0, 1, 2, PIECE].map(|at| table.value(at)), [5, 6, 0, 0]);
        assert_eq!(table.get(2), None);
    }
}
