//! The texts and files of all units, each with one number. A text in a section of strings is
//! identified by its offset there, and is read after all units: until then only its offset is
//! known.

use std::borrow::Cow;
use std::collections::HashMap;

use super::format::{NONE, cut};
use crate::hash::FastState;

/// A text that a unit refers to.
#[derive(Debug, Clone)]
pub enum Text<'d> {
    /// At this offset of the section of strings.
    At(u32),
    /// These bytes.
    Bytes(Cow<'d, [u8]>),
}

/// Where the text of a number is.
#[derive(Debug, Clone, Copy)]
enum Source {
    At(u32),
    /// Index among the texts that were added as bytes.
    Own(u32),
}

/// The texts and files while units are read.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Vec<Source>,
    places: HashMap<u32, u32, FastState>,
    own: HashMap<Box<[u8]>, u32, FastState>,
    /// Directory and name of each file.
    files: Vec<(u32, u32)>,
    file_numbers: HashMap<(u32, u32), u32, FastState>,
}

impl Pool {
    /// Returns the number of a text; equal texts that are added as bytes have the same number.
    pub fn add(&mut self, text: Text<'_>) -> u32 {
        let next = self.texts.len() as u32;
        let (number, source) = match text {
            Text::At(place) => {
                let number = *self.places.entry(place).or_insert(next);
                (number, Source::At(place))
            }
            Text::Bytes(bytes) => {
                let bytes = cut(&bytes);
                if let Some(known) = self.own.get(bytes) {
                    return *known;
                }
                let own = self.own.len() as u32;
                self.own.insert(bytes.into(), next);
                (next, Source::Own(own))
            }
        };
        if number == next {
            self.texts.push(source);
        }
        number
    }

    /// Returns the number of a file whose directory and name are numbers of texts.
    pub fn add_file(&mut self, directory: u32, name: u32) -> u32 {
        let next = self.files.len() as u32;
        let pair = (directory, name);
        let number = *self.file_numbers.entry(pair).or_insert(next);
        if number == next {
            self.files.push(pair);
        }
        number
    }

    /// Completes the pool. `read` gets ascending offsets in the section of strings, each once, and
    /// returns the texts that start there.
    pub fn read(self, read: impl FnOnce(&[u32]) -> Vec<TextBlock>) -> KnownTexts {
        let Pool {
            mut texts,
            places,
            own: own_numbers,
            files,
            file_numbers,
        } = self;
        drop(file_numbers);
        let mut order: Vec<(u32, u32)> = places.into_iter().collect();
        order.sort_unstable();
        for (rank, (_, number)) in (0..).zip(&order) {
            texts[*number as usize] = Source::At(rank);
        }
        let places: Vec<u32> = order.into_iter().map(|(place, _)| place).collect();
        let mut own: Vec<(u32, Box<[u8]>)> = own_numbers
            .into_iter()
            .map(|(bytes, number)| (number, bytes))
            .collect();
        own.sort_unstable_by_key(|(number, _)| *number);
        KnownTexts {
            texts,
            blocks: read(&places),
            own: own.into_iter().map(|(_, bytes)| bytes).collect(),
            files,
        }
    }
}

/// A block of texts, one after the other. All blocks but the last have the same number of texts.
#[derive(Debug, Default)]
pub struct TextBlock {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl TextBlock {
    /// Number of texts in one block.
    pub const TEXTS: usize = 4096;

    /// Adds a text, cut to the maximum length.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(cut(text));
        self.ends.push(self.bytes.len() as u32);
    }

    /// Number of bytes of all its texts.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Frees unused capacity, as no more texts will be added.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start as usize..end as usize])
    }
}

/// The texts and files of all units.
#[derive(Debug, Default)]
pub struct KnownTexts {
    /// Where each text is; [`Source::At`] counts through the blocks.
    texts: Vec<Source>,
    blocks: Vec<TextBlock>,
    own: Vec<Box<[u8]>>,
    files: Vec<(u32, u32)>,
}

impl KnownTexts {
    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// Returns a text; empty if there is none with that number.
    pub fn get(&self, number: u32) -> &[u8] {
        if number == NONE {
            return &[];
        }
        let text = match self.texts.get(number as usize) {
            Some(Source::At(rank)) => {
                let rank = *rank as usize;
                let block = self.blocks.get(rank / TextBlock::TEXTS);
                block.and_then(|block| block.get(rank % TextBlock::TEXTS))
            }
            Some(Source::Own(own)) => self.own.get(*own as usize).map(|bytes| &**bytes),
            None => None,
        };
        text.unwrap_or_default()
    }

    /// Directory and name of each file, as numbers of texts.
    pub fn files(&self) -> &[(u32, u32)] {
        &self.files
    }
}
