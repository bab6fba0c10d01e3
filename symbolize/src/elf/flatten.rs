//! Functions may contain or overlap one another; ranges do not. Flattening
//! once makes the lookup a plain binary search, with no steps back.

use super::alias::Function;
use super::strings::{Name, Table};

/// A stretch of addresses that belongs to one function.
///
/// It ends where the function does or where the next range starts, so no end
/// is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    /// `start` minus the function's start: not 0 behind a nested function.
    within: u32,
    size: u32,
    name: u32,
    /// From the lowest bit: table (2), inexact (1), aliases (29).
    flags: u32,
}

const _: () = assert!(size_of::<Range>() == 24);

const INEXACT: u32 = 1 << 2;
const ALIASES_SHIFT: u32 = 3;
const ALIASES_MAX: u32 = u32::MAX >> ALIASES_SHIFT;

impl Range {
    fn new(function: &Function, start: u64) -> Range {
        let inexact = if function.inexact { INEXACT } else { 0 };
        let aliases = function.aliases.min(ALIASES_MAX) << ALIASES_SHIFT;
        Range {
            start,
            within: (start - function.start) as u32,
            size: size(function),
            name: function.name.offset,
            flags: function.name.table as u32 | inexact | aliases,
        }
    }

    pub fn name(&self) -> Name {
        let table = match self.flags & 3 {
            0 => Table::Full,
            1 => Table::Dynamic,
            _ => Table::Stub,
        };
        Name {
            table,
            offset: self.name,
        }
    }

    pub fn function_start(&self) -> u64 {
        self.start - u64::from(self.within)
    }

    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }

    /// The first address behind the function. One of unknown size is known at
    /// its start alone.
    pub fn end(&self) -> u64 {
        self.function_start().saturating_add(self.size().max(1))
    }

    pub fn inexact(&self) -> bool {
        self.flags & INEXACT != 0
    }

    pub fn aliases(&self) -> u32 {
        self.flags >> ALIASES_SHIFT
    }

    /// Whether it is its function's first range.
    pub fn is_first(&self) -> bool {
        self.within == 0
    }
}

/// No function has 4 GiB; what claims to is cut.
fn size(function: &Function) -> u32 {
    u32::try_from(function.size).unwrap_or(u32::MAX)
}

fn end(function: &Function) -> u64 {
    let size = u64::from(size(function).max(1));
    function.start.saturating_add(size)
}

/// `functions` are sorted by start, of equal starts the largest first. Where
/// several cover an address, the one that starts last, the innermost, has it.
pub fn flatten(functions: &[Function]) -> Vec<Range> {
    let mut ranges = Vec::with_capacity(functions.len());
    let mut open: Vec<&Function> = Vec::new();
    for function in functions {
        close(&mut open, &mut ranges, function.start);
        open.push(function);
        push(&mut ranges, Range::new(function, function.start));
    }
    close(&mut open, &mut ranges, u64::MAX);
    ranges.shrink_to_fit();
    ranges
}

/// Closes the functions that end at or before `addr`; who contains them goes
/// on behind them.
fn close(open: &mut Vec<&Function>, ranges: &mut Vec<Range>, addr: u64) {
    while let Some(inner) = open.pop_if(|inner| end(inner) <= addr) {
        let resumed = end(inner);
        while open.pop_if(|outer| end(outer) <= resumed).is_some() {}
        if let Some(outer) = open.last().filter(|_| resumed < addr) {
            push(ranges, Range::new(outer, resumed));
        }
    }
}

/// Of two ranges with one start the later one, the inner, stays.
fn push(ranges: &mut Vec<Range>, range: Range) {
    ranges.pop_if(|last| last.start == range.start);
    ranges.push(range);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn function(start: u64, size: u64, id: u32) -> Function {
        Function {
            start,
            size,
            name: Name {
                table: Table::Dynamic,
                offset: id,
            },
            inexact: size == 0,
            aliases: id,
        }
    }

    fn at(ranges: &[Range], addr: u64) -> Option<u32> {
        let behind = ranges.partition_point(|range| range.start <= addr);
        let range = ranges[..behind].last()?;
        (addr < range.end()).then_some(range.name().offset)
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
        assert_eq!(ranges[0].aliases(), ALIASES_MAX);
        assert_eq!(at(&ranges, 1 + (1 << 33)), None);
    }

    proptest! {
        /// Against the definition, tried at every address.
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
                prop_assert_eq!(at(&ranges, addr), innermost.map(|f| f.name.offset));
            }
        }
    }
}
