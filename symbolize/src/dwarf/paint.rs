//! Converts overlapping intervals to a list in which each address has one owner.

use std::collections::BinaryHeap;

/// `start..end` belongs to `owner`, except where an interval of a higher owner overlaps it. Both
/// are link addresses; `end` is the first one after the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub start: u64,
    pub end: u64,
    pub owner: u32,
}

impl Interval {
    /// Whether one of these addresses, which ascend, is in the interval.
    pub fn has_any(&self, addrs: &[u64]) -> bool {
        let first = addrs.partition_point(|addr| *addr < self.start);
        addrs.get(first).is_some_and(|addr| *addr < self.end)
    }
}

/// From `start` up to the next element, addresses belong to `owner`; to none if that is None.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Painted {
    pub start: u64,
    pub owner: Option<u32>,
}

/// Returns the list in ascending order; its last element has no owner.
pub fn paint(mut intervals: Vec<Interval>) -> Vec<Painted> {
    let mut painted = Vec::new();
    paint_into(&mut painted, &mut intervals);
    painted
}

/// Writes the list to `painted`, replacing its contents. Leaves the intervals sorted.
pub fn paint_into(painted: &mut Vec<Painted>, intervals: &mut Vec<Interval>) {
    intervals.retain(|interval| interval.start < interval.end);
    intervals.sort_unstable_by_key(|interval| (interval.start, interval.owner));
    painted.clear();
    painted.reserve(intervals.len() * 2);
    let mut push = |start: u64, owner: Option<u32>| {
        painted.pop_if(|last| last.start == start);
        if painted.last().and_then(|last| last.owner) != owner {
            painted.push(Painted { start, owner });
        }
    };
    // The open interval with the highest owner is on top.
    let mut open: BinaryHeap<(u32, u64)> = BinaryHeap::new();
    for interval in intervals.iter() {
        close(&mut open, interval.start, &mut push);
        open.push((interval.owner, interval.end));
        let top = open.peek().map(|(owner, _)| *owner);
        push(interval.start, top);
    }
    close(&mut open, u64::MAX, &mut push);
}

/// Removes the intervals that end at or before `to`; the ones below become the owners.
fn close(open: &mut BinaryHeap<(u32, u64)>, to: u64, push: &mut impl FnMut(u64, Option<u32>)) {
    while let Some(&(_, end)) = open.peek().filter(|(_, end)| *end <= to) {
        open.pop();
        while open.peek().is_some_and(|(_, other)| *other <= end) {
            open.pop();
        }
        push(end, open.peek().map(|(owner, _)| *owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(painted: &[Painted], addr: u64) -> Option<u32> {
        let behind = painted.partition_point(|p| p.start <= addr);
        painted[..behind].last()?.owner
    }

    proptest! {
        /// Compares with the definition, evaluated at every address.
        #[test]
        fn the_highest_has_it(
            spans in proptest::collection::vec((0u64..60, 0u64..30), 0..25)
        ) {
            let intervals: Vec<_> = (0..).zip(&spans).map(|(owner, (start, len))| {
                Interval { start: *start, end: start + len, owner }
            }).collect();
            let painted = paint(intervals.clone());
            prop_assert!(painted.is_sorted_by(|a, b| a.start < b.start));
            for addr in 0..100 {
                let holds = |i: &&Interval| i.start <= addr && addr < i.end;
                let expected = intervals.iter().filter(holds).map(|i| i.owner).max();
                prop_assert_eq!(at(&painted, addr), expected, "{}", addr);
            }
        }
    }
}
