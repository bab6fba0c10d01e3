//! Stores texts, each once, in the layout of the table: a length, then the bytes, at a multiple of
//! four and within one block; texts longer than a block begin at the start of one.

use std::collections::HashMap;

use super::blocks::BLOCK_BYTES;
use super::format::NONE;
use crate::hash::FastState;

/// The texts, laid out for a part that starts with a block.
#[derive(Debug)]
pub struct Texts<'t> {
    ids: HashMap<&'t [u8], u32, FastState>,
    /// The part as it is written to the table.
    pub bytes: Vec<u8>,
    /// Whether the table stays in memory, where texts may cross blocks.
    in_memory: bool,
}

impl<'t> Texts<'t> {
    /// Prepares for about `count` texts.
    pub fn new(in_memory: bool, count: usize) -> Texts<'t> {
        Texts {
            ids: HashMap::with_capacity_and_hasher(count, FastState::default()),
            bytes: Vec::new(),
            in_memory,
        }
    }

    /// Returns the number of a text: its offset from the part's start, in words; `NONE` if no
    /// numbers are left.
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
