//! Finds the unit that has the code at an address.

use gimli::{DebugAranges, LittleEndian};

use super::paint::{self, Interval, Painted};
use super::ranges::Stretch;
use super::reader::Reader;
use super::rows;
use super::scopes::is_code;
use super::sections::Sections;
use super::unit::Window;

/// Maximum number of intervals, which take 64 MiB while the index is made.
const INTERVALS_MAX: usize = 4 << 20;

/// Maps addresses to the numbers of units.
#[derive(Debug, Default)]
pub struct Index {
    painted: Vec<Painted>,
    /// Whether each unit is in this index.
    listed: Vec<bool>,
}

/// If several units claim the same code, the first one gets it.
fn owner(unit: usize) -> u32 {
    u32::MAX - unit as u32
}

impl Index {
    /// Makes the index from `.debug_aranges`, without reading any unit. The section need not list
    /// all units. If `wanted` has addresses, which ascend, the index knows these and no others.
    pub fn listed(sections: &Sections, units: &[usize], wanted: Option<&[u64]>) -> Index {
        let mut intervals = Vec::new();
        let mut listed = vec![false; units.len()];
        let mut bytes = Vec::new();
        if let Some(units) = sections.units()
            && units.aranges.size() <= units.unit_max
        {
            // If the section cannot be read, nothing is listed.
            _ = units.aranges.copy_part(0..units.aranges.size(), &mut bytes);
        }
        let mut headers = DebugAranges::new(&bytes, LittleEndian).headers();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = units.binary_search(&header.debug_info_offset().0) else {
                continue;
            };
            let mut entries = header.entries();
            while let Ok(Some(entry)) = entries.next()
                && intervals.len() < INTERVALS_MAX
            {
                let range = entry.range();
                if is_code(range.begin, range.end) {
                    listed[unit] = true;
                    let interval = Interval {
                        start: range.begin,
                        end: range.end,
                        owner: owner(unit),
                    };
                    if wanted.is_none_or(|wanted| interval.has_any(wanted)) {
                        intervals.push(interval);
                    }
                }
            }
        }
        Index {
            painted: paint::paint(intervals),
            listed,
        }
    }

    /// Makes the index of the units that are not listed, from their own entries.
    pub fn of_unlisted(reader: &Reader<'_>, listed: &Index) -> Index {
        let mut intervals = Vec::new();
        let (mut window, mut lists) = (Window::default(), Stretch::default());
        let is_listed = |unit: &usize| listed.listed.get(*unit).copied().unwrap_or(false);
        for unit in (0..reader.units()).filter(|unit| !is_listed(unit)) {
            add_unit(reader, unit, &mut window, &mut lists, &mut intervals);
            if intervals.len() > INTERVALS_MAX {
                break;
            }
        }
        Index {
            painted: paint::paint(intervals),
            listed: Vec::new(),
        }
    }

    /// Returns the number of the unit that has the code at an address.
    pub fn find(&self, addr: u64) -> Option<usize> {
        let behind = self.painted.partition_point(|p| p.start <= addr);
        let owner = self.painted.get(behind.checked_sub(1)?)?.owner?;
        Some((u32::MAX - owner) as usize)
    }
}

fn add_unit(
    reader: &Reader<'_>,
    index: usize,
    window: &mut Window,
    lists: &mut Stretch,
    intervals: &mut Vec<Interval>,
) {
    let before = intervals.len();
    let owner = owner(index);
    if let Some(unit) = reader.open_head(index, window) {
        let add = |start, end| {
            if is_code(start, end) {
                intervals.push(Interval { start, end, owner });
            }
        };
        _ = reader.lists(lists).each_of_unit(reader.dwarf(), &unit, add);
    }
    // Some compilers leave the ranges of a unit out; they also follow from its lines.
    if intervals.len() == before
        && let Some(unit) = reader.open(index, window)
    {
        let rows = rows::read(&unit, false, Vec::new());
        for pair in rows.windows(2).filter(|pair| pair[0].file != rows::NO_FILE) {
            let (start, end) = (pair[0].start, pair[1].start);
            intervals.push(Interval { start, end, owner });
        }
    }
}
