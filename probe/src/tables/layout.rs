//! The *layout* of a process: its executable mappings and the files in them, as known in user
//! space; and its conversion for the walk.

use super::file_table::TableHandle;
use crate::ids::ModuleId;
use probe_ebpf::table::{Mapping, PROCESS_MAPPINGS_MAX};
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::Arc;
use symbolize::{FileOffset, Segments};

/// An executable mapping. All processes with the same mappings share a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MappedRange {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Position in the file of the first byte.
    pub file_offset: u64,
    /// The file; `None` for code made at run time.
    pub file: Option<ModuleId>,
}

/// All mappings of a process, by address. A layout of thousands is looked up at each sample: so its
/// hash is computed once.
#[derive(Debug, Clone)]
pub struct Layout {
    ranges: Arc<[MappedRange]>,
    hash: u64,
}

impl Layout {
    /// Makes a layout of ranges that are sorted by address. All layouts of a map need the same
    /// hasher.
    pub fn new(ranges: &[MappedRange], hasher: &RandomState) -> Self {
        Self {
            hash: hasher.hash_one(ranges),
            ranges: ranges.into(),
        }
    }
}

impl Deref for Layout {
    type Target = [MappedRange];

    fn deref(&self) -> &[MappedRange] {
        &self.ranges
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        let is_one = Arc::ptr_eq(&self.ranges, &other.ranges);
        is_one || self.hash == other.hash && self.ranges == other.ranges
    }
}

impl Eq for Layout {}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The table of a file that is mapped, and its executable segments.
pub type TableOf<'a> = (TableHandle, &'a Segments);

/// Returns the list for a layout: sorted, without overlaps, with equivalent neighbours merged. Also
/// returns true if some had to be left out.
pub fn resolve<'a>(
    layout: &[MappedRange],
    table_of: impl Fn(ModuleId) -> Option<TableOf<'a>>,
) -> (Vec<Mapping>, bool) {
    let mut mappings: Vec<Mapping> = Vec::with_capacity(layout.len());
    // Without the `vsyscall` page: no code runs there, and the walk compares addresses as signed
    // numbers.
    let of_user_space = |range: &&MappedRange| range.end <= i64::MAX as u64;
    for range in layout.iter().filter(of_user_space) {
        let mapping = mapping(range, range.file.and_then(&table_of));
        match mappings.last_mut() {
            Some(last) if mapping.start < last.end => {}
            Some(last) if last.end == mapping.start && means_the_same(last, &mapping) => {
                last.end = mapping.end;
            }
            _ if mapping.start < mapping.end => mappings.push(mapping),
            _ => {}
        }
    }
    let too_many = mappings.len() > PROCESS_MAPPINGS_MAX;
    mappings.truncate(PROCESS_MAPPINGS_MAX);
    (mappings, too_many)
}

/// Converts a range to the form of the walk.
pub fn mapping(range: &MappedRange, table: Option<TableOf<'_>>) -> Mapping {
    let found = table.and_then(|(handle, segments)| {
        let link = segments.to_link(FileOffset(range.file_offset))?;
        Some((handle, range.start.wrapping_sub(link.0)))
    });
    let (handle, bias) = found.unwrap_or((TableHandle::NONE, 0));
    Mapping {
        start: range.start,
        end: range.end,
        bias,
        table: handle.table,
        first_page: handle.first_page,
        pages: handle.pages,
        reserved: 0,
    }
}

/// Whether every address has the same rule with either.
fn means_the_same(a: &Mapping, b: &Mapping) -> bool {
    (a.bias, a.table, a.first_page, a.pages) == (b.bias, b.table, b.first_page, b.pages)
}

/// Whether every address that is in `old` has the same rule in `new`.
pub fn is_addition(old: &[Mapping], new: &[Mapping]) -> bool {
    old.iter().all(|mapping| {
        let mut at = mapping.start;
        while at < mapping.end {
            let holder = new.partition_point(|new| new.end <= at);
            match new.get(holder) {
                Some(new) if new.start <= at && means_the_same(new, mapping) => at = new.end,
                _ => return false,
            }
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_ebpf::table::NO_TABLE;
    use symbolize::Segment;

    fn range(start: u64, end: u64, file_offset: u64, file: Option<u32>) -> MappedRange {
        MappedRange {
            start,
            end,
            file_offset,
            file: file.map(ModuleId),
        }
    }

    const HANDLE: TableHandle = TableHandle {
        table: 77,
        first_page: 1,
        pages: 2,
    };

    /// Converts a layout. Only file 1 has a table; its code is at 0x2340 in the file and at link
    /// address 0x12340.
    fn resolved(layout: &[MappedRange]) -> Vec<Mapping> {
        let segments = Segments::new(vec![Segment {
            offset: 0x2340,
            vaddr: 0x1_2340,
            filesz: 0x5000,
            executable: true,
        }]);
        resolve(layout, |file| (file.0 == 1).then_some((HANDLE, &segments))).0
    }

    fn plain(start: u64, end: u64) -> Mapping {
        Mapping {
            start,
            end,
            table: NO_TABLE,
            ..Mapping::default()
        }
    }

    #[test]
    fn the_bias_leads_to_the_link_address() {
        // The kernel maps from the beginning of the page.
        let list = resolved(&[range(0x7000_2000, 0x7000_8000, 0x2000, Some(1))]);
        assert_eq!(list[0].bias, 0x7000_2000 - 0x1_2000);
        assert_eq!(
            (list[0].table, list[0].first_page, list[0].pages),
            (77, 1, 2)
        );
    }

    #[test]
    fn the_upper_half_is_left_out() {
        let vsyscall = range(0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000, 0, None);
        assert_eq!(resolved(&[range(1, 2, 0, None), vsyscall]), [plain(1, 2)]);
    }

    #[test]
    fn without_a_table_there_are_frame_pointers() {
        assert_eq!(resolved(&[range(1, 2, 0, None)]), [plain(1, 2)]);
        assert_eq!(resolved(&[range(1, 2, 0, Some(2))]), [plain(1, 2)]);
        // A part of the file that has no code.
        assert_eq!(resolved(&[range(1, 2, 0x9000, Some(1))]), [plain(1, 2)]);
    }

    #[test]
    fn neighbours_that_mean_the_same_are_one() {
        let list = resolved(&[
            range(0x1000, 0x2000, 0, None),
            range(0x2000, 0x3000, 0, None),
            range(0x3000, 0x4000, 0x3000, Some(1)),
            range(0x4000, 0x5000, 0x4000, Some(1)),
            range(0x5000, 0x6000, 0x4000, Some(1)),
        ]);
        let ends: Vec<_> = list.iter().map(|mapping| mapping.end).collect();
        assert_eq!(ends, [0x3000, 0x5000, 0x6000]);
    }

    #[test]
    fn what_overlaps_or_is_empty_is_left_out() {
        let list = resolved(&[
            range(1, 5, 0, None),
            range(4, 9, 0, None),
            range(9, 9, 0, None),
        ]);
        assert_eq!(list, [plain(1, 5)]);
    }

    #[test]
    fn too_many_are_cut() {
        let many: Vec<_> = (0..PROCESS_MAPPINGS_MAX as u64 + 1)
            .map(|at| range(at * 2, at * 2 + 1, 0, None))
            .collect();
        let (list, too_many) = resolve(&many, |_| None);
        assert!(too_many && list.len() == PROCESS_MAPPINGS_MAX);
    }

    #[test]
    fn additions() {
        let with_table = Mapping {
            table: 3,
            ..plain(10, 20)
        };
        for (old, new, expected) in [
            (vec![], vec![plain(1, 2)], true),
            (vec![plain(1, 2)], vec![plain(1, 2), plain(5, 6)], true),
            (vec![plain(1, 2)], vec![plain(0, 9)], true),
            (vec![plain(1, 9)], vec![plain(1, 4), plain(4, 9)], true),
            (vec![plain(1, 9)], vec![plain(1, 4), plain(5, 9)], false),
            (vec![plain(1, 9)], vec![plain(1, 8)], false),
            (vec![plain(1, 2)], vec![], false),
            (vec![plain(10, 20)], vec![with_table], false),
            (vec![with_table], vec![with_table, plain(20, 30)], true),
        ] {
            assert_eq!(is_addition(&old, &new), expected, "{old:?} {new:?}");
        }
    }
}
