//! Resolves names that are in other units, as after link-time optimization. Each name is looked up
//! once, after all units that need it were read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::flatten::ReadUnit;
use super::names::{EntryPlace, Name, REFERENCES_MAX};
use super::parallel;
use super::reader::Reader;
use super::unit::Window;
use crate::hash::FastState;
use crate::table::pool::{Pool, Text};

type Found<'d> = HashMap<EntryPlace, Name<'d>, FastState>;

/// Fills in the names that units lack.
pub fn resolve(reader: &Reader<'_>, units: &mut [ReadUnit], pool: &Mutex<Pool>, threads: usize) {
    let lacking = units.iter().flat_map(|unit| &unit.elsewhere);
    let wanted = lacking.map(|(_, place)| *place).collect();
    let found = find(reader, wanted, threads);
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    for unit in units {
        for (text, place) in std::mem::take(&mut unit.elsewhere) {
            if let Some((name, is_linkage)) = last(&found, place) {
                unit.ranges.set_text(text, name, is_linkage, &mut pool);
            }
        }
    }
}

/// Reads the names at these entries, and at the entries that they refer to.
fn find<'d>(reader: &Reader<'d>, mut wanted: Vec<EntryPlace>, threads: usize) -> Found<'d> {
    let mut found = Found::default();
    for _ in 0..REFERENCES_MAX {
        wanted.retain(|place| !found.contains_key(place));
        if wanted.is_empty() {
            break;
        }
        wanted.sort_unstable();
        wanted.dedup();
        let by_unit: Vec<&[EntryPlace]> = wanted
            .chunk_by(|a, b| reader.unit_of(*a) == reader.unit_of(*b))
            .collect();
        let names = parallel::map(threads, by_unit.len(), |index, window: &mut Window| {
            let places = by_unit[index];
            let unit = reader.unit_of(places[0])?;
            reader.names(unit, places, window)
        });
        let mut next = Vec::new();
        for (index, names) in names {
            next.extend(names.iter().filter_map(|name| name.next));
            found.extend(by_unit[index].iter().copied().zip(names));
        }
        wanted = next;
    }
    found
}

/// Follows the references from an entry to the last name, and returns it with whether it is the
/// linkage name.
fn last<'d>(found: &Found<'d>, place: EntryPlace) -> Option<(Text<'d>, bool)> {
    let mut text = None;
    let mut next = Some(place);
    for _ in 0..REFERENCES_MAX {
        let Some(name) = next.and_then(|place| found.get(&place)) else {
            break;
        };
        if name.is_linkage {
            return name.text.clone().map(|text| (text, true));
        }
        text = text.or_else(|| name.text.clone());
        next = name.next;
    }
    text.map(|text| (text, false))
}
