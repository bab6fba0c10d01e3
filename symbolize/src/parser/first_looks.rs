//! Answers the first questions about a large file without building the table of all its functions.
//!
//! Most files are asked about a few times, when new places in them are sampled. Building the table
//! of all functions takes as long as about a dozen look-ups without it, and memory that other
//! tables need: a compiler, its library and a program with as many functions have more than the
//! limit for all. So the table is built when a file was asked about so often that the look-ups took
//! as long as the table would have. After the table was dropped, counting starts again.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::open_beside;
use super::order::Beside;
use crate::elf;
use crate::object::Object;
use crate::{ElfSymbols, FileOffset};

/// Number of look-ups in a file before its table is built.
const LOOKS_MAX: u32 = 8;

/// Maximum number of places for one such look-up. There are more if much of a file is new, and then
/// the table is better.
const PLACES_MAX: usize = 64;

/// Symbol tables smaller than this, with some 10,000 functions, are built at once: it takes two
/// milliseconds.
const TABLE_BYTES_MIN: u64 = 256 << 10;

/// Maximum number of files whose look-ups are counted. If there are more, all counts are reset.
const FILES_MAX: usize = 1024;

/// Counts the look-ups in files without a table.
#[derive(Debug, Default)]
pub struct FirstLooks {
    /// Number of look-ups, by number of the file.
    counts: Mutex<HashMap<u64, u32>>,
}

impl FirstLooks {
    /// Returns the symbols around these places alone; `None` if the table has to be built.
    pub fn take(
        &self,
        number: u64,
        file: &File,
        beside: &Beside,
        places: &[FileOffset],
    ) -> Option<ElfSymbols> {
        if places.len() > PLACES_MAX || !self.count(number) {
            return None;
        }
        let near = look(file, beside, places);
        if near.is_none() {
            self.counts().remove(&number);
        }
        near
    }

    /// Counts one more look-up; returns false if the file already had all of its look-ups.
    fn count(&self, number: u64) -> bool {
        let mut counts = self.counts();
        if counts.len() >= FILES_MAX {
            counts.clear();
        }
        let count = counts.entry(number).or_default();
        *count += 1;
        let may_look = *count <= LOOKS_MAX;
        if !may_look {
            counts.remove(&number);
        }
        may_look
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn counts(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the symbols around places. `None` also if the file cannot be read: building the table then
/// reports why.
fn look(file: &File, beside: &Beside, places: &[FileOffset]) -> Option<ElfSymbols> {
    let object = Object::read(file).ok()?;
    // Without section headers all data would be searched for a table of Go's.
    if object.sections().is_empty() {
        return None;
    }
    let is_large = |object: &Object| elf::table_bytes(object) >= TABLE_BYTES_MIN;
    let near = match beside {
        Beside::Unknown(files) if is_large(&object) => {
            ElfSymbols::near(object, Some(files), places).ok()??
        }
        Beside::Nothing if is_large(&object) => ElfSymbols::near(object, None, places).ok()??,
        Beside::Found(file, origin) => {
            let found = open_beside(file, *origin)?;
            if !is_large(&object) && !is_large(&found) {
                return None;
            }
            let mut near = ElfSymbols::near(object, None, places).ok()??;
            near.add_separate_near(found, *origin, places)?;
            near
        }
        Beside::Unknown(_) | Beside::Nothing => return None,
    };
    // Go's own table is read as a whole, and cached with the others.
    near.go().is_none().then_some(near)
}
