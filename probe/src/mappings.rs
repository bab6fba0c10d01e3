//! Where in a process its executable mappings lie.

use crate::ids::ModuleId;

/// What a mapping is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    Module(ModuleId),
    /// Code made at run time. Whose module that is depends on the process: a
    /// child shares its parent's mappings, but not its parent's code maps.
    Anonymous,
}

/// One executable mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Position in the file of the first byte; for a module that is no file the
    /// address itself, so that an offset is an address.
    pub file_offset: u64,
    pub backing: Backing,
}

impl Mapping {
    /// Position in the module of an address inside this mapping.
    pub fn offset_of(&self, address: u64) -> u64 {
        (address - self.start).wrapping_add(self.file_offset)
    }
}

/// More mappings than this in one process are not kept: Linux allows 65,530 by
/// default, and few of those are executable.
pub const MAPPINGS_MAX: usize = 65_536;

/// The executable mappings of one process: sorted, without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappings {
    sorted: Vec<Mapping>,
}

impl Mappings {
    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self
            .sorted
            .partition_point(|mapping| mapping.start <= address);
        let mapping = self.sorted.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.sorted.iter()
    }

    /// Adds a mapping; what it covers of older ones is gone.
    pub fn insert(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        let first = self
            .sorted
            .partition_point(|mapping| mapping.end <= new.start);
        let last = self
            .sorted
            .partition_point(|mapping| mapping.start < new.end);
        let mut replacement = Vec::with_capacity(3);
        if let Some(cut) = self.sorted[first..last].first()
            && cut.start < new.start
        {
            replacement.push(Mapping {
                end: new.start,
                ..*cut
            });
        }
        replacement.push(new);
        if let Some(cut) = self.sorted[first..last].last()
            && cut.end > new.end
        {
            let file_offset = cut.offset_of(new.end);
            replacement.push(Mapping {
                start: new.end,
                file_offset,
                ..*cut
            });
        }
        if self.sorted.len() - (last - first) + replacement.len() <= MAPPINGS_MAX {
            self.sorted.splice(first..last, replacement);
        }
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
            Backing::Anonymous => unreachable!("not used here"),
        }
    }

    /// Inserts in order; then which module is at each of the addresses.
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
    fn empty_and_reversed_are_nothing() {
        check(&[(10, 10), (20, 10)], &[(10, None), (15, None)]);
    }

    proptest! {
        /// Against the obvious model: an array of owners.
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
