//! The executable mappings of a process.

use crate::ids::ModuleId;
use probe_ebpf::table::PROCESS_MAPPINGS_MAX;
use std::ops::Range;
use std::sync::Arc;

/// What a mapping is backed by: a module is a file, or code that the kernel provides, such as the
/// vDSO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    Module(ModuleId),
    /// Code made at run time. Its module depends on the process: a child shares its parent's
    /// mappings, but not its parent's code maps.
    Anonymous,
    /// The trampolines of Python's `-X perf`: also code made at run time, which is walked by the
    /// table of a module that stands for their kind, as if it were mapped at `base`.
    Trampolines {
        table: ModuleId,
        base: u64,
    },
}

/// One executable mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Position in the file of the first byte. For a module that is not a file it is the address
    /// itself, so that an offset is an address.
    pub file_offset: u64,
    pub backing: Backing,
}

impl Mapping {
    /// Returns the position in the module of an address inside this mapping.
    pub fn offset_of(&self, address: u64) -> u64 {
        (address - self.start).wrapping_add(self.file_offset)
    }
}

/// Maximum number of mappings that are kept for one process. It is what the walk can have for one
/// process, an eighth of what it can have for all. Linux allows 65,530 by default, and few of those
/// are executable.
pub const MAPPINGS_MAX: usize = PROCESS_MAPPINGS_MAX;

/// Maximum number of mappings in a piece of a list: most processes have one piece. In tests lists
/// have several pieces sooner.
const PIECE_MAX: usize = if cfg!(test) { 4 } else { 128 };

/// The executable mappings of one process: sorted, without overlaps.
///
/// The list is kept in pieces, which copies of it share until they are changed. A child has a copy of
/// its parent's list, and a walk that has begun refers to the list of that time. With one piece, a
/// process with very many mappings would cost as much memory for each child, and for each mapping
/// that is added while it is sampled.
#[derive(Debug, Clone, Default)]
pub struct Mappings {
    pieces: Vec<Piece>,
    /// Whether the process has more than are kept.
    is_cut: bool,
}

/// A part of a list, which has at least one mapping.
#[derive(Debug, Clone)]
struct Piece {
    /// The number of its first mapping in the order of addresses.
    first: usize,
    sorted: Arc<Vec<Mapping>>,
}

impl Piece {
    fn start(&self) -> u64 {
        self.sorted[0].start
    }

    fn end(&self) -> u64 {
        self.sorted[self.sorted.len() - 1].end
    }
}

impl Mappings {
    /// Returns the mapping that contains an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .pieces
            .partition_point(|piece| piece.start() <= address);
        let sorted = &self.pieces.get(after.checked_sub(1)?)?.sorted;
        let after = sorted.partition_point(|mapping| mapping.start <= address);
        let mapping = sorted.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Iterates over all mappings by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.pieces.iter().flat_map(|piece| piece.sorted.iter())
    }

    /// Returns a mapping by its number in the order of addresses.
    pub fn get(&self, number: usize) -> Option<&Mapping> {
        let after = self.pieces.partition_point(|piece| piece.first <= number);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        piece.sorted.get(number - piece.first)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        let last = self.pieces.last();
        last.map_or(0, |piece| piece.first + piece.sorted.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Iterates over the pieces that copies of this list may share: what tells them apart, and how many
    /// mappings they have.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let pieces = self.pieces.iter();
        pieces.map(|piece| (Arc::as_ptr(&piece.sorted).addr(), piece.sorted.len()))
    }

    /// Whether the process has more mappings than are kept here.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Records that the process has one more mapping that is not kept.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Adds a mapping; the parts of older ones that it covers are removed.
    pub fn insert(&mut self, new: Mapping) {
        self.put(new.start, new.end, Some(new));
    }

    /// Removes what a new mapping covers that is not kept itself.
    pub fn cover(&mut self, start: u64, end: u64) {
        self.put(start, end, None);
        self.cut();
    }

    fn put(&mut self, start: u64, end: u64, new: Option<Mapping>) {
        if start >= end {
            return;
        }
        let room = MAPPINGS_MAX - self.len();
        let changed = self.pieces_at(start, end);
        let mut sorted = self.take(changed.clone());
        self.is_cut |= !put(&mut sorted, start, end, new, room);
        self.put_back(changed, sorted);
    }

    /// Returns the pieces that a mapping at these addresses changes: those with mappings that it
    /// covers, else the one that it is added to.
    fn pieces_at(&self, start: u64, end: u64) -> Range<usize> {
        let from = self.pieces.partition_point(|piece| piece.end() <= start);
        let to = self.pieces.partition_point(|piece| piece.start() < end);
        if from < to {
            from..to
        } else {
            from.saturating_sub(1)..from.max(1).min(self.pieces.len())
        }
    }

    /// Returns the mappings of these pieces, of which one is left empty, and the others are removed.
    fn take(&mut self, pieces: Range<usize>) -> Vec<Mapping> {
        let Some(first) = self.pieces.get_mut(pieces.start) else {
            return Vec::new();
        };
        let mut sorted = Arc::unwrap_or_clone(std::mem::take(&mut first.sorted));
        for piece in self.pieces.drain(pieces.start + 1..pieces.end) {
            sorted.extend_from_slice(&piece.sorted);
        }
        sorted
    }

    /// Puts mappings back in place of these pieces, of which [`Mappings::take`] has left one.
    fn put_back(&mut self, pieces: Range<usize>, mut sorted: Vec<Mapping>) {
        let mut place = pieces.start..self.pieces.len().min(pieces.start + 1);
        // Small neighbours become one piece: else a list could have as many pieces as mappings.
        let is_small = |piece: &Piece, length| piece.sorted.len() + length <= PIECE_MAX / 2;
        if let Some(before) = place.start.checked_sub(1)
            && is_small(&self.pieces[before], sorted.len())
        {
            sorted.splice(0..0, self.pieces[before].sorted.iter().copied());
            place.start = before;
        }
        if let Some(after) = self.pieces.get(place.end)
            && is_small(after, sorted.len())
        {
            sorted.extend_from_slice(&after.sorted);
            place.end += 1;
        }
        let mut rest = Vec::new();
        while sorted.len() > PIECE_MAX {
            // Two halves: many mappings are added in the order of addresses, or against it.
            let half = sorted.len().min(2 * PIECE_MAX) / 2;
            rest.push(sorted.split_off(sorted.len() - half));
        }
        if sorted.capacity() > 2 * sorted.len() {
            sorted.shrink_to_fit();
        }
        let all = std::iter::once(sorted).chain(rest.into_iter().rev());
        let all = all.filter(|sorted| !sorted.is_empty()).map(|sorted| Piece {
            first: 0,
            sorted: Arc::new(sorted),
        });
        let changed = place.start;
        self.pieces.splice(place, all);
        let mut first = match changed.checked_sub(1) {
            Some(before) => self.pieces[before].first + self.pieces[before].sorted.len(),
            None => 0,
        };
        for piece in &mut self.pieces[changed..] {
            piece.first = first;
            first += piece.sorted.len();
        }
    }
}

/// Adds a mapping to sorted ones, of which it replaces what it covers. They may become `room` more.
/// Returns whether all of them were kept.
fn put(sorted: &mut Vec<Mapping>, start: u64, end: u64, new: Option<Mapping>, room: usize) -> bool {
    let first = sorted.partition_point(|mapping| mapping.end <= start);
    let last = sorted.partition_point(|mapping| mapping.start < end);
    let covered = &sorted[first..last];
    let before = covered
        .first()
        .filter(|cut| cut.start < start)
        .map(|cut| Mapping { end: start, ..*cut });
    let after = covered
        .last()
        .filter(|cut| cut.end > end)
        .map(|cut| Mapping {
            start: end,
            file_offset: cut.offset_of(end),
            ..*cut
        });
    let room = room + covered.len();
    let parts = [before, new, after].into_iter().flatten();
    let are_kept = parts.clone().count() <= room;
    sorted.splice(first..last, parts.take(room));
    are_kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, module: u32) -> Mapping {
        Mapping {
            start,
            end,
            file_offset: start,
            backing: Backing::Module(ModuleId(module)),
        }
    }

    fn owner(mapping: &Mapping) -> u32 {
        match mapping.backing {
            Backing::Module(module) => module.0,
            _ => unreachable!("not used here"),
        }
    }

    /// Inserts in order; then compares the module at each of the addresses.
    fn check(inserted: &[(u64, u64)], expected: &[(u64, Option<u32>)]) {
        let mut mappings = Mappings::default();
        for (index, (start, end)) in inserted.iter().enumerate() {
            mappings.insert(mapping(*start, *end, index as u32));
        }
        for (address, module) in expected {
            let found = mappings.find(*address);
            assert_eq!(found.map(owner), *module, "at {address}");
            if let Some(found) = found {
                assert_eq!(
                    found.offset_of(*address),
                    *address,
                    "a cut keeps offsets right"
                );
            }
        }
    }

    #[test]
    fn apart() {
        check(
            &[(10, 20), (30, 40)],
            &[
                (9, None),
                (10, Some(0)),
                (19, Some(0)),
                (20, None),
                (35, Some(1)),
            ],
        );
    }

    #[test]
    fn a_new_mapping_cuts_a_hole_into_an_old_one() {
        check(
            &[(10, 50), (20, 30)],
            &[
                (10, Some(0)),
                (20, Some(1)),
                (29, Some(1)),
                (30, Some(0)),
                (49, Some(0)),
            ],
        );
    }

    #[test]
    fn a_new_mapping_covers_several() {
        check(
            &[(10, 20), (20, 30), (30, 40), (15, 35)],
            &[(14, Some(0)), (15, Some(3)), (34, Some(3)), (35, Some(2))],
        );
    }

    #[test]
    fn what_is_too_much_is_not_kept_and_nothing_else_is_said_to_be_there() {
        let mut mappings = Mappings::default();
        for at in 0..MAPPINGS_MAX as u64 {
            mappings.insert(mapping(at * 10, at * 10 + 8, 1));
        }
        assert!(mappings.len() == MAPPINGS_MAX && !mappings.is_cut());
        mappings.insert(mapping(18, 20, 2));
        assert!(mappings.is_cut());
        assert_eq!(mappings.find(18), None);
        mappings.insert(mapping(10, 30, 3));
        assert_eq!(mappings.find(15).map(owner), Some(3), "it replaces two");
        mappings.insert(mapping(92, 94, 4));
        mappings.cover(102, 104);
        for (address, module) in [(91, Some(1)), (95, None), (101, Some(1)), (103, None)] {
            assert_eq!(mappings.find(address).map(owner), module, "{address}");
        }
        assert!(mappings.len() <= MAPPINGS_MAX);
        check_pieces(&mappings);
    }

    /// Checks what has to hold of the pieces of a list.
    fn check_pieces(mappings: &Mappings) {
        let mut first = 0;
        for piece in &mappings.pieces {
            assert_eq!(piece.first, first);
            assert!(!piece.sorted.is_empty() && piece.sorted.len() <= PIECE_MAX);
            first += piece.sorted.len();
        }
        assert_eq!(mappings.len(), first);
        for neighbours in mappings.pieces.windows(2) {
            let sum: usize = neighbours.iter().map(|piece| piece.sorted.len()).sum();
            assert!(sum > PIECE_MAX / 2, "few pieces");
        }
        assert!(mappings.iter().is_sorted_by(|a, b| a.end <= b.start));
        for (number, mapping) in mappings.iter().enumerate() {
            assert_eq!(mappings.get(number), Some(mapping));
        }
        assert_eq!(mappings.get(first), None);
    }

    #[test]
    fn a_copy_shares_all_but_what_is_changed() {
        let mut parents = Mappings::default();
        for at in 0..1_000 {
            parents.insert(mapping(at * 10, at * 10 + 8, 1));
        }
        let mut childs = parents.clone();
        childs.insert(mapping(5_008, 5_010, 2));
        let is_parents = |piece: &&Piece| {
            let mut all = parents.pieces.iter();
            all.any(|known| Arc::ptr_eq(&known.sorted, &piece.sorted))
        };
        let shared = childs.pieces.iter().filter(is_parents).count();
        assert!(shared >= parents.pieces.len() - 1 && shared > 200);
        assert_eq!(parents.find(5_009), None, "a copy does not change it");
        assert_eq!(childs.find(5_009).map(owner), Some(2));
        check_pieces(&parents);
        check_pieces(&childs);
    }

    #[test]
    fn empty_and_reversed_are_nothing() {
        check(&[(10, 10), (20, 10)], &[(10, None), (15, None)]);
    }

    proptest! {
        /// Compares with the obvious model: an array of owners.
        #[test]
        fn the_last_one_wins(
            inserted in proptest::collection::vec((0u64..64, 0u64..64, 0..4u32), 0..60)
        ) {
            let mut mappings = Mappings::default();
            let mut owners = [None; 64];
            for (index, (start, end, draw)) in inserted.iter().enumerate() {
                let is_kept = *draw > 0;
                if is_kept {
                    mappings.insert(mapping(*start, *end, index as u32));
                } else {
                    mappings.cover(*start, *end);
                }
                for address in *start..*end {
                    owners[address as usize] = is_kept.then_some(index as u32);
                }
            }
            for (address, owner) in owners.iter().enumerate() {
                let found = mappings.find(address as u64);
                prop_assert_eq!(found.map(self::owner), *owner);
            }
            check_pieces(&mappings);
        }
    }
}
