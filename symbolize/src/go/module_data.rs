//! The runtime's own record of the addresses of its data (`runtime.firstmoduledata`), found by its
//! first word, which points to the table.

use super::header::{Header, Layout};
use super::pointers::Pointers;
use super::table::MappedPart;

/// Number of words that are read. The record grows with nearly each release; the needed words are
/// in its first half.
const WORDS: usize = 64;

/// Indexes of words that have not moved since Go 1.16: names, list of functions, text.
const NAMES: usize = 1;
const LIST: usize = 13;
const TEXT: usize = 22;

/// From this index on, words move from release to release.
const CHANGING: usize = 24;

/// The words of the record that may be addresses.
#[derive(Debug, Clone, Copy)]
pub struct ModuleData {
    words: [u64; WORDS],
}

impl ModuleData {
    /// Finds the record of the module whose table is at `place`.
    pub fn find(pointers: &Pointers<'_>, place: MappedPart, header: &Header) -> Option<ModuleData> {
        if header.layout == Layout::Go1_2 {
            return None;
        }
        let is_record = |words: &[u64; WORDS]| {
            words[0] == place.addr
                && words[NAMES] == place.addr.wrapping_add(header.names)
                && words[LIST] == place.addr.wrapping_add(header.list)
        };
        let words = pointers.find_to(place.addr, |at| pointers.words(at).filter(is_record))?;
        Some(ModuleData { words })
    }

    /// Start of the text.
    pub fn text(&self) -> u64 {
        self.words[TEXT]
    }

    /// All other words that may be addresses: inline trees are relative to one of them.
    pub fn others(&self) -> impl Iterator<Item = u64> {
        let others = self.words[CHANGING..].iter().copied();
        others.filter(|word| *word != 0)
    }
}
