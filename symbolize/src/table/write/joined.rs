//! The leaves of all units as those of the table.
//!
//! Most are full, and nobody else has code between where they start and where they
//! end: they become leaves of the table as they are. Of the rest each range is put into
//! new ones.

use super::places::AllTexts;
use crate::table::blocks::BLOCK_BYTES;
use crate::table::leaf::{self, Filling, Leaf, NO_PLACE, Numbers};
use crate::table::unit::UnitLeaves;

/// A leaf of a unit.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    unit: u32,
    leaf: u32,
}

/// A stretch of addresses with one place.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    end: u32,
    piece: usize,
    place: u16,
}

/// By start. Beyond 4 GiB from the start of its code no file has any.
fn pieces(units: &[UnitLeaves], base: u64) -> Vec<Piece> {
    let count = units.iter().map(UnitLeaves::count).sum();
    let mut all = Vec::with_capacity(count);
    for (number, unit) in (0..).zip(units) {
        let Ok(first) = u32::try_from(unit.first.saturating_sub(base)) else {
            continue;
        };
        let mut behind = None;
        // Backwards: a leaf ends where the next one starts.
        for index in (0..unit.count()).rev() {
            let mut ranges = unit.leaf(index).ranges();
            let (start, _) = ranges.next().expect("no leaf is empty");
            let (last, place) = ranges.next_back().unwrap_or((start, NO_PLACE));
            let end = match place {
                NO_PLACE => last,
                _ => behind.unwrap_or(last),
            };
            behind = Some(start);
            if let Some((start, end)) = first.checked_add(start).zip(first.checked_add(end)) {
                all.push(Piece {
                    start,
                    end,
                    unit: number,
                    leaf: index as u32,
                });
            }
        }
    }
    all.sort_unstable_by_key(|piece| (piece.start, piece.unit, piece.leaf));
    all
}

/// Gives `put` the leaves of the table, without overlaps. Of units that claim the
/// same code the first one counts. Takes the leaves of each unit away when they are
/// done. How many ranges there are.
pub fn join(
    units: &mut [UnitLeaves],
    base: u64,
    texts: AllTexts<'_, '_>,
    put: impl FnMut(u32, &[u8]),
) -> u64 {
    let pieces = pieces(units, base);
    let mut out = Joined {
        base,
        texts,
        filling: Filling::default(),
        numbers: Numbers::default(),
        numbered: None,
        missing: Vec::new(),
        end: 0,
        is_open: false,
        ranges: 0,
        room: Vec::with_capacity(BLOCK_BYTES),
        put,
    };
    let mut rest = &pieces[..];
    while let Some(first) = rest.first() {
        let mut end = first.end;
        let mut count = 1;
        while let Some(next) = rest.get(count).filter(|next| next.start < end) {
            end = end.max(next.end);
            count += 1;
        }
        let (together, behind) = rest.split_at(count);
        rest = behind;
        match together {
            [piece] => out.whole(*piece, &units[piece.unit as usize]),
            several => out.several(several, units),
        }
        for piece in together {
            let unit = &mut units[piece.unit as usize];
            if piece.leaf as usize + 1 == unit.count() {
                *unit = UnitLeaves::default();
            }
        }
    }
    out.close_before(u32::MAX);
    out.put_filling();
    out.ranges
}

struct Joined<'p, 'u, P> {
    base: u64,
    texts: AllTexts<'p, 'u>,
    filling: Filling,
    /// Of the leaf that a range was asked of last: unit and number.
    numbers: Numbers,
    numbered: Option<(u32, u32)>,
    missing: Vec<u16>,
    /// Where what is done ends, and whether its last range has a place.
    end: u32,
    is_open: bool,
    ranges: u64,
    room: Vec<u8>,
    put: P,
}

impl<P: FnMut(u32, &[u8])> Joined<'_, '_, P> {
    /// A leaf of which nobody else has any code.
    fn whole(&mut self, piece: Piece, unit: &UnitLeaves) {
        self.close_before(piece.start);
        let first = (unit.first - self.base) as u32;
        let bytes = unit.bytes(piece.leaf as usize);
        let is_full = bytes.len() * 4 >= BLOCK_BYTES * 3;
        let is_due = self.filling.ranges() == 0 || self.filling.bytes() * 2 >= BLOCK_BYTES;
        let leaf = unit.leaf(piece.leaf as usize);
        if is_full && is_due {
            self.put_filling();
            self.room.extend_from_slice(bytes);
            let number = piece.unit as usize;
            leaf::relocate(&mut self.room, first, |place| {
                self.texts.resolve(number, place);
            });
            self.ranges += leaf.ranges().len() as u64;
            (self.put)(piece.start, &self.room);
            self.room.clear();
            let last = leaf.ranges().next_back();
            self.is_open = last.is_some_and(|(_, place)| place != NO_PLACE);
        } else {
            for (start, place) in leaf.ranges() {
                self.add(first + start, piece, &leaf, place);
            }
        }
        self.end = piece.end;
    }

    /// Leaves that lie among one another.
    fn several(&mut self, pieces: &[Piece], units: &[UnitLeaves]) {
        let mut stretches = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let unit = &units[piece.unit as usize];
            let first = (unit.first - self.base) as u32;
            let mut end = piece.end;
            let before = stretches.len();
            for (start, place) in unit.leaf(piece.leaf as usize).ranges().rev() {
                let start = first + start;
                if place != NO_PLACE {
                    stretches.push(Stretch {
                        start,
                        end,
                        piece: number,
                        place,
                    });
                }
                end = start;
            }
            stretches[before..].reverse();
        }
        stretches.sort_by_key(|stretch| (stretch.start, pieces[stretch.piece].unit));
        for stretch in stretches {
            let start = stretch.start.max(self.end);
            if start < stretch.end {
                let piece = pieces[stretch.piece];
                let leaf = units[piece.unit as usize].leaf(piece.leaf as usize);
                self.close_before(start);
                self.add(start, piece, &leaf, stretch.place);
                self.end = stretch.end;
            }
        }
    }

    /// Nobody has the code from what is done to `start`.
    fn close_before(&mut self, start: u32) {
        if std::mem::take(&mut self.is_open) && start > self.end {
            self.make_room(0);
            self.filling.add_range(self.end, NO_PLACE);
        }
    }

    /// From `start` on it is a place of that leaf, or none.
    fn add(&mut self, start: u32, piece: Piece, leaf: &Leaf<'_>, place: u16) {
        self.is_open = place != NO_PLACE;
        let key = (piece.unit, piece.leaf);
        if self.numbered != Some(key) {
            self.numbered = Some(key);
            self.numbers.reset(leaf.places().len());
        }
        let mut parent = self.find_missing(leaf, place);
        if !self.filling.has_room(self.missing.len()) {
            self.put_filling();
            parent = self.find_missing(leaf, place);
        }
        while let Some(number) = self.missing.pop() {
            let (mut place, _) = leaf::place(&leaf.places()[usize::from(number)]);
            self.texts.resolve(piece.unit as usize, &mut place);
            parent = self.filling.add_place(&place, parent);
            self.numbers.set(&self.filling, number.into(), parent);
        }
        self.filling.add_range(start, parent);
    }

    /// Puts the places of a chain that the leaf has not into `missing`, the innermost
    /// first; gives the number of the one behind them.
    fn find_missing(&mut self, leaf: &Leaf<'_>, place: u16) -> u16 {
        self.missing.clear();
        let mut next = place;
        while next != NO_PLACE {
            if let Some(known) = self.numbers.get(&self.filling, next.into()) {
                return known;
            }
            self.missing.push(next);
            (_, next) = leaf::place(&leaf.places()[usize::from(next)]);
        }
        NO_PLACE
    }

    fn make_room(&mut self, places: usize) {
        if !self.filling.has_room(places) {
            self.put_filling();
        }
    }

    fn put_filling(&mut self) {
        if let Some(start) = self.filling.start() {
            self.ranges += self.filling.ranges() as u64;
            self.filling.finish(&mut self.room);
            (self.put)(start, &self.room);
            self.room.clear();
        }
    }
}
