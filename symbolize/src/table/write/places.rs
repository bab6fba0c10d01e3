//! The places of all units, with functions and files by their numbers in the
//! table.

use crate::hash::FastState;
use crate::table::format::NONE;
use crate::table::intern::Texts;
use crate::table::leaf::Places;
use crate::table::unit::{Place, UnitRanges};
use std::collections::HashMap;

/// Numbered through, unit after unit.
pub struct AllPlaces<'p, 'u> {
    units: &'u [UnitRanges<'u>],
    texts: &'p mut Texts<'u>,
    /// By unit: its first place, its first text in `text_ids`, its first file in
    /// `file_ids`.
    firsts: Vec<[usize; 3]>,
    /// In the order in which ranges ask for them, so that those of one function
    /// lie together.
    text_ids: Vec<u32>,
    file_ids: Vec<u32>,
    /// The unit of the place that was asked for last.
    unit: usize,
}

impl<'p, 'u> AllPlaces<'p, 'u> {
    pub fn new(units: &'u [UnitRanges<'u>], files: &mut Files, texts: &'p mut Texts<'u>) -> Self {
        let mut firsts = Vec::with_capacity(units.len() + 1);
        let mut first = [0; 3];
        let mut file_ids = Vec::new();
        for unit in units {
            firsts.push(first);
            files.add_all(unit, texts, &mut file_ids);
            first[0] += unit.places.len();
            first[1] += unit.texts.len();
            first[2] = file_ids.len();
        }
        firsts.push(first);
        AllPlaces {
            units,
            texts,
            firsts,
            text_ids: vec![NONE; first[1]],
            file_ids,
            unit: 0,
        }
    }

    /// A place of a unit, and where that unit's are.
    fn find(&mut self, place: u32) -> Option<(Place, [usize; 3])> {
        let place = place as usize;
        let is_of = |unit: usize| {
            let bounds = self.firsts.get(unit..unit + 2);
            bounds.is_some_and(|pair| (pair[0][0]..pair[1][0]).contains(&place))
        };
        if !is_of(self.unit) {
            let behind = self.firsts.partition_point(|first| first[0] <= place);
            self.unit = behind.checked_sub(1)?;
        }
        let first = self.firsts[self.unit];
        let found = self.units.get(self.unit)?.places.get(place - first[0])?;
        Some((*found, first))
    }

    fn text(&mut self, first: usize, text: u32) -> u32 {
        let index = first + text as usize;
        match self.text_ids.get(index) {
            Some(&NONE) if text != NONE => {
                let id = self.texts.add(self.units[self.unit].text(text));
                self.text_ids[index] = id;
                id
            }
            Some(&id) => id,
            None => NONE,
        }
    }
}

impl Places for AllPlaces<'_, '_> {
    fn parent(&mut self, place: u32) -> u32 {
        match self.find(place) {
            Some((Place { parent: NONE, .. }, _)) | None => NONE,
            Some((place, first)) => place.parent + first[0] as u32,
        }
    }

    fn get(&mut self, place: u32) -> Place {
        let none = Place {
            function: NONE,
            file: NONE,
            line: 0,
            column: 0,
            parent: NONE,
        };
        let Some((place, first)) = self.find(place) else {
            return none;
        };
        let file = match place.file {
            NONE => None,
            file => self.file_ids.get(first[2] + file as usize).copied(),
        };
        Place {
            function: match place.function {
                NONE => NONE,
                function => self.text(first[1], function),
            },
            file: file.unwrap_or(NONE),
            parent: NONE,
            ..place
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
    fn add_all<'t>(&mut self, unit: &'t UnitRanges<'_>, texts: &mut Texts<'t>, out: &mut Vec<u32>) {
        out.extend(unit.files.iter().map(|(directory, name)| {
            let directory = texts.add(unit.text(*directory));
            let pair = (directory, texts.add(unit.text(*name)));
            let next = self.pairs.len() as u32;
            let id = *self.ids.entry(pair).or_insert(next);
            if id == next {
                self.pairs.push(pair);
            }
            id
        }));
    }
}
