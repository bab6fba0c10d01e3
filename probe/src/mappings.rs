//! The executable mappings of a process.

use crate::ids::ModuleId;
use probe_ebpf::table::PROCESS_MAPPINGS_MAX;

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

/// The executable mappings of one process: sorted, without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappings {
    sorted: Vec<Mapping>,
    /// Whether the process has more than are kept.
    is_cut: bool,
}

impl Mappings {
    /// Returns the mapping that contains an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .sorted
            .partition_point(|mapping| mapping.start <= address);
        let mapping = self.sorted.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// Iterates over all mappings by address.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Mapping> {
        self.sorted.iter()
    }

    /// Returns a mapping by its number in the order of addresses.
    pub fn get(&self, number: usize) -> Option<&Mapping> {
        self.sorted.get(number)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
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
        let first = self.sorted.partition_point(|mapping| mapping.end <= start);
        let last = self.sorted.partition_point(|mapping| mapping.start < end);
        let covered = &self.sorted[first..last];
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
        let room = MAPPINGS_MAX - (self.sorted.len() - covered.len());
        let parts = [before, new, after].into_iter().flatten();
        self.is_cut |= parts.clone().count() > room;
        self.sorted.splice(first..last, parts.take(room));
    }
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
        assert!(mappings.sorted.len() <= MAPPINGS_MAX);
        assert!(mappings.sorted.is_sorted_by(|a, b| a.end <= b.start));
    }

    #[test]
    fn empty_and_reversed_are_nothing() {
        check(&[(10, 10), (20, 10)], &[(10, None), (15, None)]);
    }

    proptest! {
        /// Compares with the obvious model: an array of owners.
        #[test]
        fn the_last_one_wins(inserted in proptest::collection::vec((0u64..64, 0u64..64), 0..30)) {
            let mut mappings = Mappings::default();
            let mut owners = [None; 64];
            for (index, (start, end)) in inserted.iter().enumerate() {
                mappings.insert(mapping(*start, *end, index as u32));
                for address in *start..*end {
                    owners[address as usize] = Some(index as u32);
                }
            }
            for (address, owner) in owners.iter().enumerate() {
                let found = mappings.find(address as u64);
                prop_assert_eq!(found.map(self::owner), *owner);
            }
        }
    }
}
