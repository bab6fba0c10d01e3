//! Finds the FDE of an address that several FDEs claim, one address at a time: slow, and
//! different from the crate's own sweep.

use std::cmp::Reverse;

/// The address range of one FDE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    /// Position in the order of reading.
    pub order: usize,
    /// Number of the FDE; `None` if it cannot be compared.
    pub number: Option<usize>,
}

/// The FDEs of one kind of section.
#[derive(Debug, Default)]
pub struct Ranges {
    sorted: Vec<Range>,
    /// The highest end of the ranges up to each one.
    end_max: Vec<u64>,
}

impl Ranges {
    pub fn new(mut ranges: Vec<Range>) -> Ranges {
        ranges.sort_by_key(|r| (r.start, Reverse(r.end), Reverse(r.order)));
        let mut end = 0;
        let maxima = ranges.iter().map(|range| {
            end = range.end.max(end);
            end
        });
        Ranges {
            end_max: maxima.collect(),
            sorted: ranges,
        }
    }

    /// Returns the range of an address: of several, the one that starts last, then the shortest,
    /// then the first one.
    pub fn owner(&self, addr: u64) -> Option<&Range> {
        let behind = self.sorted.partition_point(|range| range.start <= addr);
        let mut candidates = (0..behind).rev();
        let candidates = candidates.by_ref();
        candidates
            .take_while(|&index| self.end_max[index] > addr)
            .map(|index| &self.sorted[index])
            .find(|range| addr < range.end)
    }

    /// Returns the address ranges between FDEs.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = self.sorted.iter().skip(1).map(|range| range.start);
        let ends = self.end_max.iter().copied();
        ends.zip(starts).filter(|(end, start)| end < start)
    }
}
