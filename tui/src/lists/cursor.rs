//! A *cursor* is a selection that belongs to an item of a list, not to a line. When the list is
//! sorted again the selected item stays on its line of the screen if possible, and the list scrolls
//! under it.
//!
//! Until an item is selected the cursor watches the top: it stays on the first line, whatever item
//! is there.

/// A selection in a list whose items have keys of type `K`, and the scroll position of the list.
#[derive(Debug, Clone)]
pub struct Cursor<K> {
    /// The selected item. `None` while the cursor watches the top.
    held: Option<K>,
    /// The first item on the screen.
    offset: usize,
    /// The selected item's line, counted from `offset`.
    line: usize,
    /// After a step back in the history: the line of the screen on which the item was. It returns
    /// to that line as soon as there are enough rows again.
    came_back_to: Option<usize>,
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Cursor {
            held: None,
            offset: 0,
            line: 0,
            came_back_to: None,
        }
    }
}

/// Returns how many items a list shows: one less than its lines if the last line has to sum up the
/// items that do not fit.
pub fn visible(len: usize, height: usize) -> usize {
    if len <= height {
        height
    } else {
        height.saturating_sub(1)
    }
}

impl<K: Copy + Eq> Cursor<K> {
    /// Returns the key of the selected item, or `None` while the cursor watches the top.
    pub fn held(&self) -> Option<K> {
        self.held
    }

    /// Returns the index of the first item on the screen.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the index of the selected item.
    pub fn index(&self) -> usize {
        self.offset + self.line
    }

    /// Sets the key that the selected item has from now on.
    pub fn rename(&mut self, key: K) {
        if self.held.is_some() {
            self.held = Some(key);
        }
    }

    /// Adapts to a changed list or height.
    pub fn settle(&mut self, keys: &[K], height: usize) {
        let position = self
            .held
            .and_then(|held| keys.iter().position(|key| *key == held));
        match position {
            Some(at) => self.keep_line(at, keys.len(), height),
            None => self.watch_top(),
        }
    }

    /// Like [`Cursor::settle`], but if the selected item is gone, the nearest one above it that is
    /// still there is selected, or else the nearest one below. `before` is the previous list.
    pub fn settle_near(&mut self, before: &[K], keys: &[K], height: usize) {
        let held = self.held.filter(|held| !keys.contains(held));
        let was = held.and_then(|held| before.iter().position(|key| *key == held));
        let near = was.and_then(|at| {
            let (above, below) = before.split_at(at);
            let mut nearest = above.iter().rev().chain(below);
            nearest.find(|key| keys.contains(key))
        });
        self.held = near.copied().or(self.held);
        self.settle(keys, height);
    }

    /// Returns the cursor for a step back in the history: the selected item remembers its line even
    /// while other rows are shown.
    #[must_use]
    pub fn come_back(mut self) -> Self {
        self.came_back_to = Some(self.line);
        self
    }

    /// Selects no item: from now on the first line is selected, whatever item is there.
    pub fn watch_top(&mut self) {
        *self = Cursor::default();
    }

    /// Selects an item, and scrolls no more than needed.
    pub fn select(&mut self, at: usize, keys: &[K], height: usize) {
        let Some(key) = keys.get(at) else {
            return;
        };
        self.held = Some(*key);
        let shown = visible(keys.len(), height).max(1);
        let first = (at + 1).saturating_sub(shown);
        self.offset = self
            .offset
            .clamp(first, at)
            .min(keys.len().saturating_sub(shown));
        self.line = at - self.offset;
        self.came_back_to = None;
    }

    fn keep_line(&mut self, at: usize, len: usize, height: usize) {
        let shown = visible(len, height).max(1);
        let line = self.came_back_to.unwrap_or(self.line).min(shown - 1);
        self.offset = at.saturating_sub(line).min(len.saturating_sub(shown));
        self.line = at - self.offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_it_watches_the_top() {
        let mut cursor = Cursor::default();
        cursor.settle(&['a', 'b', 'c'], 2);
        assert_eq!((cursor.index(), cursor.held()), (0, None));
        cursor.settle(&['c', 'b', 'a'], 2);
        assert_eq!((cursor.index(), cursor.held()), (0, None));
    }

    #[test]
    fn a_held_item_keeps_its_line() {
        let before: Vec<u32> = (0..50).collect();
        let mut cursor = Cursor::default();
        cursor.select(5, &before, 11);
        let line = cursor.index() - cursor.offset();
        let after: Vec<u32> = (0..50).rev().collect();
        cursor.settle(&after, 11);
        assert_eq!(cursor.held(), Some(5));
        assert_eq!(after[cursor.index()], 5);
        assert_eq!(cursor.offset(), 39, "the list scrolled under it");
        cursor.settle(&before, 11);
        assert_eq!(before[cursor.index()], 5);
        assert_eq!(line, 5);
    }

    #[test]
    fn beside_an_item_that_is_gone_its_neighbour_is_selected() {
        let before = ['a', 'b', 'c', 'd', 'e'];
        let after = |keys: &[char]| {
            let mut cursor = Cursor::default();
            cursor.select(3, &before, 9);
            cursor.settle_near(&before, keys, 9);
            (cursor.held(), cursor.index())
        };
        assert_eq!(after(&['x', 'a', 'd']), (Some('d'), 2), "it is there");
        assert_eq!(after(&['a', 'b', 'e']), (Some('b'), 1));
        assert_eq!(after(&['x', 'e']), (Some('e'), 1));
        assert_eq!(after(&['x', 'y']), (None, 0));
    }

    #[test]
    fn whoever_comes_back_finds_the_line_once_the_rows_are_there() {
        let rows: Vec<u32> = (0..50).collect();
        let mut cursor = Cursor::default();
        cursor.select(5, &rows, 11);
        let mut cursor = cursor.clone().come_back();
        cursor.settle(&[5], 11);
        assert_eq!((cursor.index(), cursor.offset()), (0, 0));
        cursor.settle(&rows, 11);
        assert_eq!((cursor.index(), cursor.offset()), (5, 0));
    }

    #[test]
    fn selecting_scrolls_no_more_than_needed() {
        let keys: Vec<u32> = (0..50).collect();
        let mut cursor = Cursor::default();
        cursor.select(9, &keys, 11);
        assert_eq!(cursor.offset(), 0);
        cursor.select(10, &keys, 11);
        assert_eq!(cursor.offset(), 1);
        cursor.select(0, &keys, 11);
        assert_eq!(cursor.offset(), 0);
    }
}
