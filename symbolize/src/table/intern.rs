//! Texts, each kept once, laid out as the table has them: a length, then the
//! bytes, at a multiple of four and within one block, or, if they are longer than
//! one, from the start of a block on.

use std::collections::HashMap;

use super::blocks::BLOCK_BYTES;
use super::format::NONE;
use crate::hash::FastState;

/// They are laid out for a part that starts with a block.
#[derive(Debug)]
pub struct Texts<'t> {
    ids: HashMap<&'t [u8], u32, FastState>,
    pub bytes: Vec<u8>,
    /// In memory blocks have no bounds.
    in_memory: bool,
}

impl<'t> Texts<'t> {
    /// There may be so many.
    pub fn new(in_memory: bool, count: usize) -> Texts<'t> {
        Texts {
            ids: HashMap::with_capacity_and_hasher(count, FastState::default()),
            bytes: Vec::new(),
            in_memory,
        }
    }

    /// The number of a text, in words from the part's start; `NONE` when there
    /// are more than numbers.
    pub fn add(&mut self, text: &'t [u8]) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let size = 4 + text.len();
        let within = self.bytes.len() % BLOCK_BYTES;
        if !self.in_memory && within + size > BLOCK_BYTES && within > 0 {
            let padding = BLOCK_BYTES - within;
            self.bytes.resize(self.bytes.len() + padding, 0);
        }
        let Ok(id) = u32::try_from(self.bytes.len() / 4) else {
            return NONE;
        };
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.ids.insert(text, id);
        id
    }
}
