//! Texts, each of them stored once.

use std::collections::HashSet;
use std::sync::Arc;

/// Memory of a text in addition to its letters: two reference counts, and its entry in the set.
const BYTES_PER_TEXT: usize = 40;

/// All different texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    all: HashSet<Arc<str>>,
    /// Bytes of all of them.
    letters: usize,
}

impl Texts {
    /// Returns the stored copy of a text; stores this one if there is none.
    pub(super) fn shared(&mut self, text: Arc<str>) -> Arc<str> {
        if let Some(known) = self.all.get(&text) {
            return Arc::clone(known);
        }
        self.letters += text.len();
        self.all.insert(Arc::clone(&text));
        text
    }

    /// Removes the texts that nothing else refers to.
    pub(super) fn forget_unused(&mut self) {
        let letters = &mut self.letters;
        self.all.retain(|text| {
            let is_used = Arc::strong_count(text) > 1;
            if !is_used {
                *letters -= text.len();
            }
            is_used
        });
        self.all.shrink_to(self.all.len() * 2);
    }

    /// Number of bytes of all texts.
    #[cfg(test)]
    pub(super) fn letters(&self) -> usize {
        self.letters
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Arc<str>>() + self.all.len() * BYTES_PER_TEXT + self.letters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_until_nothing_refers_to_them() {
        let mut texts = Texts::default();
        let first = texts.shared("main".into());
        let again = texts.shared("main".into());
        assert!(Arc::ptr_eq(&first, &again));
        let other = texts.shared("work".into());
        assert_eq!(texts.letters(), 8);
        drop((first, again));
        texts.forget_unused();
        assert_eq!(texts.letters(), 4);
        assert!(Arc::ptr_eq(&other, &texts.shared("work".into())));
    }
}
