//! Functions and files of all units by their numbers in the table.

use std::collections::HashMap;

use crate::hash::FastState;
use crate::table::format::NONE;
use crate::table::intern::Texts;
use crate::table::unit::{Place, UnitTexts};

/// What the places of all units refer to.
pub struct AllTexts<'p, 'u> {
    units: &'u [UnitTexts<'u>],
    texts: &'p mut Texts<'u>,
    /// By unit: its first text in `text_ids`, its first file in `file_ids`.
    firsts: Vec<[usize; 2]>,
    /// In the order in which ranges ask for them, so that those of one function
    /// lie together.
    text_ids: Vec<u32>,
    file_ids: Vec<u32>,
}

impl<'p, 'u> AllTexts<'p, 'u> {
    pub fn new(units: &'u [UnitTexts<'u>], files: &mut Files, texts: &'p mut Texts<'u>) -> Self {
        let mut firsts = Vec::with_capacity(units.len());
        let mut first = [0; 2];
        let mut file_ids = Vec::new();
        for unit in units {
            firsts.push(first);
            files.add_all(unit, texts, &mut file_ids);
            first = [first[0] + unit.texts.len(), file_ids.len()];
        }
        AllTexts {
            units,
            texts,
            firsts,
            text_ids: vec![NONE; first[0]],
            file_ids,
        }
    }

    /// A unit's place as it is in the table.
    pub fn resolve(&mut self, unit: usize, place: &mut Place) {
        let [first_text, first_file] = self.firsts[unit];
        if place.function != NONE {
            place.function = self.text(unit, first_text, place.function);
        }
        if place.file != NONE {
            let id = self.file_ids.get(first_file + place.file as usize);
            place.file = id.copied().unwrap_or(NONE);
        }
    }

    #[inline]
    fn text(&mut self, unit: usize, first: usize, text: u32) -> u32 {
        let index = first + text as usize;
        match self.text_ids.get(index) {
            Some(&NONE) => {
                let Some(text) = self.units[unit].text(text) else {
                    return NONE;
                };
                let id = self.texts.add(text);
                self.text_ids[index] = id;
                id
            }
            Some(&id) => id,
            None => NONE,
        }
    }
}

/// Files by the texts of their directory and name.
#[derive(Default)]
pub struct Files {
    pub pairs: Vec<(u32, u32)>,
    ids: HashMap<(u32, u32), u32, FastState>,
}

impl Files {
    /// Puts the number of each file of a unit into `out`.
    fn add_all<'t>(&mut self, unit: &'t UnitTexts<'_>, texts: &mut Texts<'t>, out: &mut Vec<u32>) {
        out.extend(unit.files.iter().map(|(directory, name)| {
            let mut add = |text| texts.add(unit.text(text).unwrap_or_default());
            let pair = (add(*directory), add(*name));
            let next = self.pairs.len() as u32;
            let id = *self.ids.entry(pair).or_insert(next);
            if id == next {
                self.pairs.push(pair);
            }
            id
        }));
    }
}
