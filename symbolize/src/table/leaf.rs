//! A *leaf*: one block with everything about a range of addresses, except the names of functions
//! and files. A look-up reads one leaf.
//!
//! ```text
//! 0   number of ranges, of places                       2 + 2
//! 4   by range: where it starts, minus the base         4
//! …   places: function, file, line, column, parent      4 + 4 + 4 + 2 + 2
//! …   by range: its place                               2
//! ```
//!
//! A place that several leaves need is stored in each of them.

use std::collections::HashMap;

use super::CHAIN_MAX;
use super::blocks::BLOCK_BYTES;
use super::format::last_at_or_before;
use super::place::FunctionPlace;
use crate::bytes::{u16_at, u32_at};
use crate::hash::FastState;

/// The index for no place of this leaf.
pub const NO_PLACE: u16 = u16::MAX;

const HEAD_BYTES: usize = 4;
const PLACE_BYTES: usize = 16;
const RANGE_BYTES: usize = 4 + 2;

/// A place as stored in a leaf.
pub type PlaceBytes = [u8; PLACE_BYTES];

/// Reads a leaf.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'t> {
    starts: &'t [[u8; 4]],
    places: &'t [PlaceBytes],
    numbers: &'t [[u8; 2]],
}

impl<'t> Leaf<'t> {
    /// Opens a leaf; `None` if it claims more ranges or places than there are bytes.
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

    /// Returns the index of the place at an address.
    #[inline]
    pub fn place_at(&self, rel: u32) -> Option<u16> {
        let range = last_at_or_before(self.starts, rel)?;
        Some(u16::from_le_bytes(*self.numbers.get(range)?))
    }

    /// All places of the leaf, encoded; [`place()`] decodes one.
    pub fn places(&self) -> &'t [PlaceBytes] {
        self.places
    }

    /// All ranges: start of each, and the index of its place.
    pub fn ranges(
        &self,
    ) -> impl DoubleEndedIterator<Item = (u32, u16)> + ExactSizeIterator + use<'t> {
        let pairs = self.starts.iter().zip(self.numbers);
        pairs.map(|(start, number)| (u32::from_le_bytes(*start), u16::from_le_bytes(*number)))
    }
}

/// Decodes a place, its column and parent within the leaf.
#[inline]
pub fn place(bytes: &PlaceBytes) -> (FunctionPlace, u16) {
    let place = FunctionPlace {
        function: u32_at(bytes, 0),
        file: u32_at(bytes, 4),
        line: u32_at(bytes, 8),
        column: u16_at(bytes, 12).into(),
    };
    (place, u16_at(bytes, 14))
}

/// Moves the starts of a leaf by `starts_by`, and changes its places except for their parents.
pub fn relocate(bytes: &mut [u8], starts_by: u32, mut change: impl FnMut(&mut FunctionPlace)) {
    let Some((head, rest)) = bytes.split_first_chunk_mut::<HEAD_BYTES>() else {
        return;
    };
    let (ranges, places) = (usize::from(u16_at(head, 0)), usize::from(u16_at(head, 2)));
    let (starts, rest) = rest.split_at_mut(ranges * 4);
    for start in starts.as_chunks_mut().0 {
        *start = (u32::from_le_bytes(*start) + starts_by).to_le_bytes();
    }
    for bytes in rest[..places * PLACE_BYTES].as_chunks_mut().0 {
        let (mut found, parent) = place(bytes);
        change(&mut found);
        *bytes = bytes_of(&found, parent);
    }
}

/// A leaf that is being filled.
#[derive(Debug, Default)]
pub struct Filling {
    starts: Vec<u32>,
    places: Vec<PlaceBytes>,
    numbers: Vec<u16>,
    ids: HashMap<PlaceBytes, u16, FastState>,
    /// Number of leaves that were finished before.
    filled: u32,
}

impl Filling {
    /// Whether one more range fits, and this many places.
    pub fn has_room(&self, places: usize) -> bool {
        let places = self.places.len() + places;
        bytes(self.starts.len() + 1, places) <= BLOCK_BYTES
    }

    /// Returns the index of a place, which is added if it is new. There must be room.
    pub fn add_place(&mut self, place: &FunctionPlace, parent: u16) -> u16 {
        let place = bytes_of(place, parent);
        let next = self.places.len() as u16;
        let number = *self.ids.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }

    /// Adds a range that begins at `start`. There must be room.
    pub fn add_range(&mut self, start: u32, place: u16) {
        if self.numbers.last() != Some(&place) {
            self.starts.push(start);
            self.numbers.push(place);
        }
    }

    /// The first address minus the base; `None` for an empty leaf.
    pub fn start(&self) -> Option<u32> {
        self.starts.first().copied()
    }

    /// Number of ranges.
    pub fn ranges(&self) -> usize {
        self.starts.len()
    }

    /// Size of the leaf in bytes, if it were finished now.
    pub fn bytes(&self) -> usize {
        bytes(self.starts.len(), self.places.len())
    }

    /// Appends the leaf to `out`, and begins another one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend((self.starts.len() as u16).to_le_bytes());
        out.extend((self.places.len() as u16).to_le_bytes());
        out.extend(self.starts.iter().flat_map(|start| start.to_le_bytes()));
        out.extend_from_slice(self.places.as_flattened());
        out.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.forget();
    }

    /// Drops the contents and begins another leaf.
    pub fn forget(&mut self) {
        self.starts.clear();
        self.places.clear();
        self.numbers.clear();
        self.ids.clear();
        self.filled += 1;
    }
}

fn bytes(ranges: usize, places: usize) -> usize {
    HEAD_BYTES + ranges * RANGE_BYTES + places * PLACE_BYTES
}

/// Maps the numbers of places elsewhere to indexes in the leaf that is being filled.
#[derive(Debug, Default)]
pub struct Numbers(Vec<(u32, u16)>);

impl Numbers {
    /// Prepares for `count` places elsewhere, none of which is in the leaf.
    pub fn reset(&mut self, count: usize) {
        self.0.clear();
        self.0.resize(count, (u32::MAX, NO_PLACE));
    }

    /// Returns the index in the leaf of a place that [`Numbers::set`] noted; None if the leaf does
    /// not have it, or another leaf has been begun since.
    #[inline]
    pub fn get(&self, filling: &Filling, place: usize) -> Option<u16> {
        let known = self.0.get(place).filter(|known| known.0 == filling.filled);
        known.map(|known| known.1)
    }

    /// Notes that the leaf has the place with the number `place` elsewhere, at index `number`.
    pub fn set(&mut self, filling: &Filling, place: usize, number: u16) {
        self.0[place] = (filling.filled, number);
    }
}

fn bytes_of(place: &FunctionPlace, parent: u16) -> PlaceBytes {
    let mut bytes = [0; PLACE_BYTES];
    bytes[..4].copy_from_slice(&place.function.to_le_bytes());
    bytes[4..8].copy_from_slice(&place.file.to_le_bytes());
    bytes[8..12].copy_from_slice(&place.line.to_le_bytes());
    // Compilers do not write larger columns; 0 means unknown.
    let column = u16::try_from(place.column).unwrap_or(0);
    bytes[12..14].copy_from_slice(&column.to_le_bytes());
    bytes[14..].copy_from_slice(&parent.to_le_bytes());
    bytes
}

/// The longest chain fits into a leaf of its own.
const _: () = assert!(HEAD_BYTES + RANGE_BYTES + CHAIN_MAX * PLACE_BYTES <= BLOCK_BYTES);
const _: () = assert!(BLOCK_BYTES / RANGE_BYTES < NO_PLACE as usize);
