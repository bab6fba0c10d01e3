//! Converts functions and files of all units to their numbers in the table.

use std::collections::HashMap;

use crate::hash::FastState;
use crate::table::format::NONE;
use crate::table::intern::Texts;
use crate::table::place::FunctionPlace;
use crate::table::pool::KnownTexts;

/// The texts and files that the places of all units refer to. Numbers are assigned in the order in
/// which ranges use them, so that what one function needs is adjacent.
pub struct AllTexts<'p, 'u> {
    known: &'u KnownTexts,
    texts: &'p mut Texts<'u>,
    files: &'p mut Files,
    /// Number in the table, by the number in `known`.
    text_ids: Vec<u32>,
    file_ids: Vec<u32>,
}

impl<'p, 'u> AllTexts<'p, 'u> {
    /// Prepares for all texts and files of `known`, none of which has a number in the table yet.
    pub fn new(known: &'u KnownTexts, files: &'p mut Files, texts: &'p mut Texts<'u>) -> Self {
        AllTexts {
            known,
            texts,
            files,
            text_ids: vec![NONE; known.texts()],
            file_ids: vec![NONE; known.files().len()],
        }
    }

    /// Converts a place of a unit, whose texts and files these are, to a place of the table.
    #[inline]
    pub fn resolve(&mut self, texts: &[u32], files: &[u32], place: &mut FunctionPlace) {
        let number = |numbers: &[u32], index: u32| numbers.get(index as usize).copied();
        if place.function != NONE {
            let text = number(texts, place.function).unwrap_or(NONE);
            place.function = self.function(text);
        }
        if place.file != NONE {
            let file = number(files, place.file).unwrap_or(NONE);
            place.file = self.file(file);
        }
    }

    #[inline]
    fn function(&mut self, number: u32) -> u32 {
        match self.text_ids.get(number as usize) {
            Some(&NONE) => {
                let text = self.known.get(number);
                if text.is_empty() {
                    return NONE;
                }
                let id = self.texts.add(text);
                self.text_ids[number as usize] = id;
                id
            }
            Some(&id) => id,
            None => NONE,
        }
    }

    #[inline]
    fn file(&mut self, number: u32) -> u32 {
        match self.file_ids.get(number as usize) {
            Some(&NONE) => {
                let (directory, name) = self.known.files()[number as usize];
                let mut add = |text| self.texts.add(self.known.get(text));
                let id = self.files.add((add(directory), add(name)));
                self.file_ids[number as usize] = id;
                id
            }
            Some(&id) => id,
            None => NONE,
        }
    }
}

/// Files, as the texts of their directory and name.
#[derive(Default)]
pub struct Files {
    /// Numbers of the texts of directory and name, by the number of the file.
    pub pairs: Vec<(u32, u32)>,
    ids: HashMap<(u32, u32), u32, FastState>,
}

impl Files {
    fn add(&mut self, pair: (u32, u32)) -> u32 {
        let next = self.pairs.len() as u32;
        let id = *self.ids.entry(pair).or_insert(next);
        if id == next {
            self.pairs.push(pair);
        }
        id
    }
}
