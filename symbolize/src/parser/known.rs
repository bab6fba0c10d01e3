//! Names of one file that were already found. Most new places are in functions whose names are
//! known, so the file need not be read again for them.

use crate::{FileOffset, Origin};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Maximum memory of the names of one file: some thousands of them. If there are more, all are
/// dropped, and looked up again on demand.
const BYTES_MAX: usize = 512 << 10;

/// Approximate memory of an entry in addition to the text of its name.
const ENTRY_BYTES: usize = 64;

/// Names of functions by the range of file offsets that they are valid for.
#[derive(Debug, Default)]
pub struct KnownNames {
    /// Key: first offset of a range; value: the offset after its end, and the name. Ranges do not
    /// overlap.
    functions: BTreeMap<u64, (u64, Arc<str>)>,
    /// Where the names of the file are from; `None` until there is a name.
    origin: Option<Origin>,
    bytes: usize,
}

impl KnownNames {
    /// Returns the name at an offset of the file, and the range that has it.
    pub fn find(&self, offset: FileOffset) -> Option<(&str, Range<u64>)> {
        let (start, (end, name)) = self.functions.range(..=offset.0).next_back()?;
        (offset.0 < *end).then(|| (&**name, *start..*end))
    }

    /// Where the names of the file are from; `None` until some are known.
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// Adds a name and its range. Parts of the range that already have a name keep it.
    pub fn add(&mut self, same: Range<u64>, name: &str) {
        let before = self.functions.range(..same.end).next_back();
        let is_free = before.is_none_or(|(_, (end, _))| *end <= same.start);
        let bytes = ENTRY_BYTES + name.len();
        if same.is_empty() || !is_free || bytes > BYTES_MAX / 8 {
            return;
        }
        if self.bytes + bytes > BYTES_MAX {
            self.forget();
        }
        self.bytes += bytes;
        self.functions.insert(same.start, (same.end, name.into()));
    }

    /// Remembers where the names come from.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    /// Forgets all names.
    pub fn forget(&mut self) {
        self.functions.clear();
        self.bytes = 0;
    }

    /// Bytes of heap in use, about.
    pub fn heap_bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_for_its_bytes_and_no_others() {
        let mut known = KnownNames::default();
        known.add(100..200, "one");
        known.add(200..201, "two");
        known.add(300..300, "of nothing");
        let name = |offset| known.find(FileOffset(offset)).map(|(name, _)| name);
        assert_eq!([99, 100, 199].map(name), [None, Some("one"), Some("one")]);
        assert_eq!([200, 201, 300].map(name), [Some("two"), None, None]);
        assert_eq!(known.find(FileOffset(150)), Some(("one", 100..200)));
    }

    #[test]
    fn names_do_not_overlap() {
        let mut known = KnownNames::default();
        known.add(100..200, "one");
        for same in [50..101, 100..200, 120..130, 199..300, 0..u64::MAX] {
            known.add(same, "another");
        }
        assert_eq!(known.functions.len(), 1);
    }

    #[test]
    fn names_are_bounded() {
        let mut known = KnownNames::default();
        let name = "x".repeat(1000);
        for start in 0..10_000 {
            known.add(start..start + 1, &name);
            assert!(known.heap_bytes() <= BYTES_MAX);
            assert!(known.find(FileOffset(start)).is_some());
        }
        known.add(20_000..20_001, &"x".repeat(BYTES_MAX));
        assert_eq!(known.find(FileOffset(20_000)), None);
    }
}
