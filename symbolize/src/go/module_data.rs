//! The runtime's own record of where things are (`runtime.firstmoduledata`),
//! found by its first word, which points at the table.

use super::header::{Header, Layout};
use super::pointers::Pointers;
use super::table::MappedPart;

/// The record has grown with nearly each release; what is wanted of it is in
/// its first half.
const WORDS: usize = 64;

/// Words that have been where they are since Go 1.16: where the names are, the
/// list of functions, and the text.
const NAMES: usize = 1;
const LIST: usize = 13;
const TEXT: usize = 22;

/// What comes behind changes its place from release to release.
const CHANGING: usize = 24;

#[derive(Debug, Clone, Copy)]
pub struct ModuleData {
    words: [u64; WORDS],
}

impl ModuleData {
    pub fn find(pointers: &Pointers<'_>, place: MappedPart, header: &Header) -> Option<ModuleData> {
        if header.layout == Layout::Go1_2 {
            return None;
        }
        let is_record = |words: &[u64; WORDS]| {
            words[0] == place.addr
                && words[NAMES] == place.addr.wrapping_add(header.names)
                && words[LIST] == place.addr.wrapping_add(header.list)
        };
        let places = pointers.to(place.addr);
        let records = places.into_iter().filter_map(|at| pointers.words(at));
        records
            .into_iter()
            .find(is_record)
            .map(|words| ModuleData { words })
    }

    /// Where the text starts.
    pub fn text(&self) -> u64 {
        self.words[TEXT]
    }

    /// All else that may be an address: inline trees count from one of them.
    pub fn others(&self) -> impl Iterator<Item = u64> {
        let others = self.words[CHANGING..].iter().copied();
        others.filter(|word| *word != 0)
    }
}
