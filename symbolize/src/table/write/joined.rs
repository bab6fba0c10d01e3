//! Joins the leaves of all units to leaves of the table.
//!
//! Most leaves are full, and no other unit has code between their start and end: they become leaves
//! of the table as they are. Of the others each range is put into new leaves.

use super::places::AllTexts;
use crate::table::blocks::BLOCK_BYTES;
use crate::table::leaf::{self, Filling, Leaf, NO_PLACE, Numbers};
use crate::table::unit::UnitRanges;

/// A leaf of a unit.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    unit: u32,
    leaf: u32,
}

/// A range of addresses with one place.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    end: u32,
    piece: usize,
    place: u16,
}

/// Returns the pieces by start. Those beyond 4 GiB from the start of the code are left out, as no
/// file has any.
fn pieces(units: &[UnitRanges], base: u64) -> Vec<Piece> {
    let count = units.iter().map(|unit| unit.leaves.count()).sum();
    let mut all = Vec::with_capacity(count);
    for (number, UnitRanges { leaves: unit, .. }) in (0..).zip(units) {
        let Ok(first) = u32::try_from(unit.first.saturating_sub(base)) else {
            continue;
        };
        let mut behind = None;
        // Backwards, because a leaf ends where the next one starts.
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

/// Calls `put` with the leaves of the table, without overlaps. If units claim the same code, the
/// first one gets it. The leaves of each unit are dropped when they are done. Returns the number of
/// ranges.
pub fn join(
    units: &mut [UnitRanges],
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
            if piece.leaf as usize + 1 == unit.leaves.count() {
                *unit = UnitRanges::default();
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
    /// Numbers of the leaf that was used last, identified by unit and index.
    numbers: Numbers,
    numbered: Option<(u32, u32)>,
    missing: Vec<u16>,
    /// End of what is done, and whether its last range has a place.
    end: u32,
    is_open: bool,
    ranges: u64,
    room: Vec<u8>,
    put: P,
}

impl<P: FnMut(u32, &[u8])> Joined<'_, '_, P> {
    /// Adds a leaf that overlaps no other.
    fn whole(&mut self, piece: Piece, unit: &UnitRanges) {
        self.close_before(piece.start);
        let leaves = &unit.leaves;
        let first = (leaves.first - self.base) as u32;
        let bytes = leaves.bytes(piece.leaf as usize);
        let is_full = bytes.len() * 4 >= BLOCK_BYTES * 3;
        let is_due = self.filling.ranges() == 0 || self.filling.bytes() * 2 >= BLOCK_BYTES;
        let leaf = leaves.leaf(piece.leaf as usize);
        if is_full && is_due {
            self.put_filling();
            self.room.extend_from_slice(bytes);
            leaf::relocate(&mut self.room, first, |place| {
                self.texts.resolve(&unit.texts, &unit.files, place);
            });
            self.ranges += leaf.ranges().len() as u64;
            (self.put)(piece.start, &self.room);
            self.room.clear();
            let last = leaf.ranges().next_back();
            self.is_open = last.is_some_and(|(_, place)| place != NO_PLACE);
        } else {
            for (start, place) in leaf.ranges() {
                self.add(first + start, piece, unit, &leaf, place);
            }
        }
        self.end = piece.end;
    }

    /// Adds leaves that overlap each other.
    fn several(&mut self, pieces: &[Piece], units: &[UnitRanges]) {
        let mut stretches = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let unit = &units[piece.unit as usize].leaves;
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
                let unit = &units[piece.unit as usize];
                let leaf = unit.leaves.leaf(piece.leaf as usize);
                self.close_before(start);
                self.add(start, piece, unit, &leaf, stretch.place);
                self.end = stretch.end;
            }
        }
    }

    /// Leaves the code from the end of what is done up to `start` without a place.
    fn close_before(&mut self, start: u32) {
        if std::mem::take(&mut self.is_open) && start > self.end {
            self.make_room(0);
            self.filling.add_range(self.end, NO_PLACE);
        }
    }

    /// Begins a range at `start` with a place of that leaf, or with none.
    fn add(&mut self, start: u32, piece: Piece, unit: &UnitRanges, leaf: &Leaf<'_>, place: u16) {
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
            self.texts.resolve(&unit.texts, &unit.files, &mut place);
            parent = self.filling.add_place(&place, parent);
            self.numbers.set(&self.filling, number.into(), parent);
        }
        self.filling.add_range(start, parent);
    }

    /// Collects the places of a chain that the leaf does not have into `missing`, innermost first;
    /// returns the index of the place after them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkAddr;
    use crate::table::place::FunctionPlace;
    use crate::table::pool::{KnownTexts, Pool};
    use crate::table::unit::{UnitBuilder, UnitScratch};
    use crate::table::{Extras, Table, write};
    use proptest::prelude::*;

    const NONE: u32 = u32::MAX;

    /// A range of a test's unit: its length, and whether it has a place.
    type Span = (u64, bool);

    /// The expected rows of a unit: range and line.
    fn rows(unit: u32, first: u64, spans: &[Span]) -> Vec<(u64, u64, u32)> {
        let mut at = first;
        let row = |(number, (len, has_place)): (u32, &Span)| {
            let start = at;
            at += len;
            has_place.then_some((start, at, (unit << 16) + number + 1))
        };
        (0..).zip(spans).filter_map(row).collect()
    }

    fn built(rows: &[(u64, u64, u32)]) -> UnitRanges {
        let mut unit = UnitBuilder::new(UnitScratch::default());
        let mut end = None;
        for &(start, behind, line) in rows {
            if let Some(end) = end.filter(|end| *end < start) {
                unit.leaf(0);
                unit.add_range(end, NO_PLACE);
            }
            unit.skip_gap(start);
            let place = |line| FunctionPlace {
                function: NONE,
                file: NONE,
                line,
                column: 0,
            };
            // Every other range is inlined, at lines that many have in common.
            let leaf = unit.leaf(2);
            let parent = match line % 2 {
                0 => NO_PLACE,
                _ => leaf.add_place(&place(line % 7), NO_PLACE),
            };
            let number = leaf.add_place(&place(line), parent);
            unit.add_range(start, number);
            end = Some(behind);
        }
        if let Some(end) = end {
            unit.leaf(0);
            unit.add_range(end, NO_PLACE);
        }
        unit.finish(&std::sync::Mutex::new(Pool::default())).0
    }

    fn spans() -> impl Strategy<Value = (u64, Vec<Span>)> {
        let short = proptest::collection::vec((1u64..400, any::<bool>()), 0..40);
        let long = proptest::collection::vec((1u64..4, Just(true)), 500..900);
        (0x1000u64..0x3000, prop_oneof![short, long])
    }

    proptest! {
        /// Compares with the definition, for units that overlap each other in any way.
        #[test]
        fn the_first_has_it(units in proptest::collection::vec(spans(), 0..6)) {
            let rows = |(number, (first, spans)): (u32, &(u64, Vec<Span>))| rows(number, *first, spans);
            let rows: Vec<_> = (0..).zip(&units).map(rows).collect();
            let mut all: Vec<(u64, u64, u32)> = rows.concat();
            all.sort_by_key(|(start, ..)| *start);
            let mut expected = std::collections::BTreeMap::new();
            let mut end = 0;
            for (start, behind, line) in all {
                (start.max(end)..behind).for_each(|addr| _ = expected.insert(addr, line));
                end = end.max(behind);
            }
            let units = rows.iter().map(|rows| built(rows)).collect();
            let table = Table::from_bytes(write(units, &KnownTexts::default(), &Extras::default()).unwrap()).unwrap();
            for addr in (0xff0..0x7000).chain([0, u64::MAX]) {
                let lines: Vec<u32> = table.find(LinkAddr(addr)).map(|frame| frame.line).collect();
                let of = |line: &u32| match line % 2 {
                    0 => vec![*line],
                    _ => vec![*line, line % 7],
                };
                prop_assert_eq!(lines, expected.get(&addr).map_or(vec![], of), "{:#x}", addr);
            }
        }
    }
}
