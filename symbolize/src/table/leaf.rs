//! A *leaf*: one block with all that there is about a stretch of addresses, but
//! for names of functions and files. A look-up reads one.
//!
//! ```text
//! 0   number of ranges, of places                       2 + 2
//! 4   by range: where it starts, minus the base         4
//! …   places: function, file, line, column, parent      4 + 4 + 4 + 2 + 2
//! …   by range: its place                               2
//! ```
//!
//! A place that several leaves need is in each of them.

use std::collections::HashMap;

use super::CHAIN_MAX;
use super::blocks::BLOCK_BYTES;
use super::format::{NONE, last_at_or_before};
use super::unit::Place;
use crate::bytes::{u16_at, u32_at};
use crate::hash::FastState;

/// No place of this leaf.
pub const NO_PLACE: u16 = u16::MAX;

const HEAD_BYTES: usize = 4;
const PLACE_BYTES: usize = 16;
const RANGE_BYTES: usize = 4 + 2;

/// A place as it lies in a leaf.
pub type PlaceBytes = [u8; PLACE_BYTES];

/// A leaf, to be read.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'t> {
    starts: &'t [[u8; 4]],
    places: &'t [PlaceBytes],
    numbers: &'t [[u8; 2]],
}

impl<'t> Leaf<'t> {
    /// `None` if there are more ranges or places than bytes.
    #[inline]
    pub fn new(bytes: &'t [u8]) -> Option<Leaf<'t>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (ranges, places) = (usize::from(u16_at(head, 0)), usize::from(u16_at(head, 2)));
        let (starts, rest) = rest.split_at_checked(ranges * 4)?;
        let (places, rest) = rest.split_at_checked(places * PLACE_BYTES)?;
        Some(Leaf {
            starts: starts.as_chunks().0,
            places: places.as_chunks().0,
            numbers: rest.get(..ranges * 2)?.as_chunks().0,
        })
    }

    /// The number of the place at an address.
    #[inline]
    pub fn place_at(&self, rel: u32) -> Option<u16> {
        let range = last_at_or_before(self.starts, rel)?;
        Some(u16::from_le_bytes(*self.numbers.get(range)?))
    }

    pub fn places(&self) -> &'t [PlaceBytes] {
        self.places
    }
}

/// A place, its column and parent within the leaf.
#[inline]
pub fn place(bytes: &PlaceBytes) -> (Place, u16) {
    let place = Place {
        function: u32_at(bytes, 0),
        file: u32_at(bytes, 4),
        line: u32_at(bytes, 8),
        column: u16_at(bytes, 12).into(),
        parent: NONE,
    };
    (place, u16_at(bytes, 14))
}

/// Where the places of all units are, by numbers of their own.
pub trait Places {
    /// The place that this one was inlined at, or `NONE`.
    fn parent(&mut self, place: u32) -> u32;
    /// With function and file as they are in the table.
    fn get(&mut self, place: u32) -> Place;
}

/// A leaf that is being filled.
#[derive(Debug, Default)]
pub struct Filling {
    starts: Vec<u32>,
    places: Vec<PlaceBytes>,
    numbers: Vec<u16>,
    ids: HashMap<u32, u16, FastState>,
    missing: Vec<u32>,
}

impl Filling {
    /// Adds a range; `false` if there is no room for it and its places.
    pub fn add(&mut self, start: u32, place: u32, all: &mut impl Places) -> bool {
        self.missing.clear();
        let mut next = place;
        let mut parent = NO_PLACE;
        while next != NONE && self.missing.len() < CHAIN_MAX {
            if let Some(known) = self.ids.get(&next) {
                parent = *known;
                break;
            }
            self.missing.push(next);
            next = all.parent(next);
        }
        let places = self.places.len() + self.missing.len();
        let ranges = self.starts.len() + 1;
        if HEAD_BYTES + ranges * RANGE_BYTES + places * PLACE_BYTES > BLOCK_BYTES {
            return false;
        }
        while let Some(place) = self.missing.pop() {
            let number = self.places.len() as u16;
            self.places.push(bytes_of(all.get(place), parent));
            self.ids.insert(place, number);
            parent = number;
        }
        self.starts.push(start);
        self.numbers.push(parent);
        true
    }

    /// The first address, minus the base; `None` if there is nothing in it.
    pub fn start(&self) -> Option<u32> {
        self.starts.first().copied()
    }

    /// Puts the leaf out, and begins another.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend((self.starts.len() as u16).to_le_bytes());
        out.extend((self.places.len() as u16).to_le_bytes());
        out.extend(self.starts.iter().flat_map(|start| start.to_le_bytes()));
        out.extend_from_slice(self.places.as_flattened());
        out.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.starts.clear();
        self.places.clear();
        self.numbers.clear();
        self.ids.clear();
    }
}

fn bytes_of(place: Place, parent: u16) -> PlaceBytes {
    let mut bytes = [0; PLACE_BYTES];
    bytes[..4].copy_from_slice(&place.function.to_le_bytes());
    bytes[4..8].copy_from_slice(&place.file.to_le_bytes());
    bytes[8..12].copy_from_slice(&place.line.to_le_bytes());
    // No compiler tells of more; 0 is not known.
    let column = u16::try_from(place.column).unwrap_or(0);
    bytes[12..14].copy_from_slice(&column.to_le_bytes());
    bytes[14..].copy_from_slice(&parent.to_le_bytes());
    bytes
}

/// The longest chain has room in a leaf of its own.
const _: () = assert!(HEAD_BYTES + RANGE_BYTES + CHAIN_MAX * PLACE_BYTES <= BLOCK_BYTES);
const _: () = assert!(BLOCK_BYTES / RANGE_BYTES < NO_PLACE as usize);
