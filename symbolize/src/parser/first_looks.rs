//! The first questions about a large file, before there is a table of all its functions.
//!
//! Most files are asked a few times, when new places in them are met. A table of all functions takes
//! as long as a dozen looks for a few, and room that is another table's: a compiler, its
//! library and a program with as many functions have more than there is for all. So the table
//! is made when a file was asked so often that the looks took as long as the table would have, and once it
//! was forgotten, that begins anew.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::open_beside;
use super::order::Beside;
use crate::elf;
use crate::object::Object;
use crate::{ElfSymbols, FileOffset};

/// Looks at a file before its table is made.
const LOOKS_MAX: u32 = 8;

/// Places that one look is for. More of them come when much of a file is new, which the table is for.
const PLACES_MAX: usize = 64;

/// Tables of less than that, with some 10,000 functions, are made at once: it takes two milliseconds.
const TABLE_BYTES_MIN: u64 = 256 << 10;

/// Files of which looks are counted. Beyond that all counts begin anew.
const FILES_MAX: usize = 1024;

/// How often files were looked at without a table.
#[derive(Debug, Default)]
pub struct FirstLooks {
    /// By number of the file.
    counts: Mutex<HashMap<u64, u32>>,
}

impl FirstLooks {
    /// What tells of these places alone. None if the table is to be made.
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

    /// Counts one more look at a file. False if it had all of its looks.
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

    /// No code panics while it holds the lock, and every state is consistent.
    fn counts(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// None as well if the file cannot be read: making the table tells why.
fn look(file: &File, beside: &Beside, places: &[FileOffset]) -> Option<ElfSymbols> {
    let object = Object::read(file).ok()?;
    // Without section headers all of its data is looked through for a table of Go's.
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
    // Go's own table is read whole, and kept with the others.
    near.go().is_none().then_some(near)
}
