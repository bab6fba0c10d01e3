//! The texts and files of all units, each with one number. What lies in a section of
//! strings has it by its place there, and is read when all units are: a unit knows
//! no more of a name than where it is.

use std::borrow::Cow;
use std::collections::HashMap;

use super::format::{NONE, cut};
use crate::hash::FastState;

/// A text that a unit tells of.
#[derive(Debug, Clone)]
pub enum Text<'d> {
    /// In the section of strings, from there on.
    At(u32),
    /// These bytes.
    Bytes(Cow<'d, [u8]>),
}

/// Where the text of a number is.
#[derive(Debug, Clone, Copy)]
enum Source {
    At(u32),
    /// Among those that came as bytes.
    Own(u32),
}

/// Texts and files while units are read.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Vec<Source>,
    places: HashMap<u32, u32, FastState>,
    own: HashMap<Box<[u8]>, u32, FastState>,
    /// Directory and name.
    files: Vec<(u32, u32)>,
    file_numbers: HashMap<(u32, u32), u32, FastState>,
}

impl Pool {
    /// The number of a text; equal texts that come as bytes have one.
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

    /// The number of a file, whose directory and name are numbers of texts.
    pub fn add_file(&mut self, directory: u32, name: u32) -> u32 {
        let next = self.files.len() as u32;
        let pair = (directory, name);
        let number = *self.file_numbers.entry(pair).or_insert(next);
        if number == next {
            self.files.push(pair);
        }
        number
    }

    /// All of them. `read` is given places in the section of strings, ascending, each
    /// once, and gives the texts that start there.
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

/// So many texts that were read, one behind the other; the last block has the rest.
#[derive(Debug, Default)]
pub struct TextBlock {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl TextBlock {
    /// Texts of one block.
    pub const TEXTS: usize = 4096;

    /// No longer than a table has it.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(cut(text));
        self.ends.push(self.bytes.len() as u32);
    }

    /// Bytes of all its texts.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// There will be no more.
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
    /// [`Source::At`] counts through the blocks.
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

    /// Empty where there is none.
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
