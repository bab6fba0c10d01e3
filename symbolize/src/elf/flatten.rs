//! Functions may contain or overlap each other; ranges do not. Flattening them once makes the
//! look-up a plain binary search, without steps back.

use super::alias::{Function, Label};
use super::strings::{Name, Table};
use std::ops;

/// A range of addresses that belongs to one function.
///
/// It ends where the function ends or where the next range starts, so its end is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Link address of the range's first byte.
    pub start: u64,
    /// `start` minus the function's start: not 0 for the part after a nested function.
    within: u32,
    size: u32,
    /// Offset in the string table, or index of the aliases.
    name: u32,
    /// From the lowest bit: the table, or that there are several names (2 bits); inexact (1 bit).
    flags: u32,
}

const _: () = assert!(size_of::<Range>() == 24);

const INEXACT: u32 = 1 << 2;
const SEVERAL: u32 = 3;

impl Range {
    fn new(function: &Function, start: u64) -> Range {
        let inexact = if function.inexact { INEXACT } else { 0 };
        let (name, kind) = match function.label {
            Label::Only(name) => (name.offset, name.table as u32),
            Label::Several(group) => (group, SEVERAL),
        };
        Range {
            start,
            within: (start - function.start) as u32,
            size: size(function),
            name,
            flags: kind | inexact,
        }
    }

    /// Returns the name of the function, or where its names are.
    pub fn label(&self) -> Label {
        let table = match self.flags & 3 {
            0 => Table::Full,
            1 => Table::Dynamic,
            2 => Table::Stub,
            _ => return Label::Several(self.name),
        };
        Label::Only(Name {
            table,
            offset: self.name,
        })
    }

    /// Start of the function, which may be before the range.
    pub fn function_start(&self) -> u64 {
        self.start - u64::from(self.within)
    }

    /// Size of the function; 0 if unknown.
    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }

    /// The first address after the function. A function of unknown size is known only at its start.
    pub fn end(&self) -> u64 {
        self.function_start().saturating_add(self.size().max(1))
    }

    /// Whether the size of the function is a guess; see [`Function::inexact`].
    pub fn inexact(&self) -> bool {
        self.flags & INEXACT != 0
    }

    /// Whether it is the first range of its function.
    pub fn is_first(&self) -> bool {
        self.within == 0
    }
}

/// Returns the size, cut to 32 bits: no real function has 4 GiB.
fn size(function: &Function) -> u32 {
    u32::try_from(function.size).unwrap_or(u32::MAX)
}

fn end(function: &Function) -> u64 {
    let size = u64::from(size(function).max(1));
    function.start.saturating_add(size)
}

/// Converts functions to ranges. They must be sorted by start, and for equal starts by falling
/// size. If several functions cover an address, the one that starts last, the innermost, gets it.
#[derive(Debug, Default)]
pub struct Flattening {
    ranges: Vec<Range>,
    /// Functions that have not ended yet.
    open: Vec<Function>,
}

impl Flattening {
    /// Adds the next function in the order of starts.
    pub fn add(&mut self, function: Function) {
        self.close(function.start);
        self.open.push(function);
        push(&mut self.ranges, Range::new(&function, function.start));
    }

    /// Ends all functions that are open, and returns the ranges in ascending order.
    pub fn finish(mut self) -> Vec<Range> {
        self.close(u64::MAX);
        self.ranges.shrink_to_fit();
        self.ranges
    }

    /// Closes the functions that end at or before `addr`; after each, the containing function
    /// continues.
    fn close(&mut self, addr: u64) {
        while let Some(inner) = self.open.pop_if(|inner| end(inner) <= addr) {
            let resumed = end(&inner);
            while self.open.pop_if(|outer| end(outer) <= resumed).is_some() {}
            if let Some(outer) = self.open.last().filter(|_| resumed < addr) {
                push(&mut self.ranges, Range::new(outer, resumed));
            }
        }
    }
}

/// Appends a range. If two ranges have the same start, the later one, which is the inner one,
/// replaces the other.
fn push(ranges: &mut Vec<Range>, range: Range) {
    ranges.pop_if(|last| last.start == range.start);
    ranges.push(range);
}

/// Returns the range of addresses around `addr` that belong to the same range, and true; or those
/// that no range contains, and false.
pub fn around(ranges: &[Range], addr: u64) -> (bool, ops::Range<u64>) {
    let behind = ranges.partition_point(|range| range.start <= addr);
    let next = ranges.get(behind).map_or(u64::MAX, |range| range.start);
    match ranges[..behind].last() {
        Some(range) if addr < range.end() => (true, range.start..range.end().min(next)),
        Some(range) => (false, range.end()..next),
        None => (false, 0..next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flatten(functions: &[Function]) -> Vec<Range> {
        let mut flattening = Flattening::default();
        functions
            .iter()
            .for_each(|function| flattening.add(*function));
        flattening.finish()
    }

    fn function(start: u64, size: u64, id: u32) -> Function {
        Function {
            start,
            size,
            label: Label::Several(id),
            inexact: size == 0,
        }
    }

    fn at(ranges: &[Range], addr: u64) -> Option<u32> {
        let behind = ranges.partition_point(|range| range.start <= addr);
        let range = ranges[..behind].last()?;
        (addr < range.end()).then_some(range.name)
    }

    #[test]
    fn the_innermost_has_it() {
        let ranges = flatten(&[
            function(100, 100, 1),
            function(110, 50, 2),
            function(120, 10, 3),
            function(300, 0, 4),
        ]);
        let cases = [
            (99, None),
            (100, Some(1)),
            (110, Some(2)),
            (120, Some(3)),
            (130, Some(2)),
            (160, Some(1)),
            (199, Some(1)),
            (200, None),
            (300, Some(4)),
            (301, None),
        ];
        for (addr, expected) in cases {
            assert_eq!(at(&ranges, addr), expected, "{addr}");
        }
        let resumed = ranges.iter().find(|r| r.start == 160).unwrap();
        assert_eq!((resumed.function_start(), resumed.size()), (100, 100));
        assert!(!resumed.is_first());
    }

    #[test]
    fn extremes_are_cut_and_do_not_overflow() {
        let ranges = flatten(&[
            function(1, u64::MAX, u32::MAX),
            function(u64::MAX - 1, u64::MAX, 7),
        ]);
        assert_eq!(at(&ranges, u64::MAX - 1), Some(7));
        assert_eq!(at(&ranges, 2), Some(u32::MAX));
        assert_eq!(ranges[0].label(), Label::Several(u32::MAX));
        assert_eq!(at(&ranges, 1 + (1 << 33)), None);
    }

    proptest! {
        /// Compares with the definition, evaluated at every address.
        #[test]
        fn agrees_with_the_definition(
            spans in proptest::collection::btree_set((0u64..60, 0u64..30), 0..25)
        ) {
            let mut spans: Vec<_> = spans.into_iter().collect();
            spans.sort_by_key(|&(start, size)| (start, std::cmp::Reverse(size)));
            let functions: Vec<_> = (0..)
                .zip(&spans)
                .map(|(id, &(start, size))| function(start, size, id))
                .collect();
            let ranges = flatten(&functions);
            prop_assert!(ranges.is_sorted_by(|a, b| a.start < b.start));
            for addr in 0..100 {
                let innermost = functions
                    .iter()
                    .rfind(|f| f.start <= addr && addr < f.start + f.size.max(1));
                prop_assert_eq!(at(&ranges, addr), innermost.map(|f| Range::new(f, f.start).name));
                let (is_named, around) = around(&ranges, addr);
                prop_assert!(around.contains(&addr));
                prop_assert_eq!(is_named, innermost.is_some());
                for other in around.take_while(|other| *other < 100) {
                    prop_assert_eq!(at(&ranges, other), at(&ranges, addr));
                }
            }
        }
    }
}
