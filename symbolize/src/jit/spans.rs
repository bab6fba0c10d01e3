//! Finds the entry of a code map for an address, while entries are added.
//!
//! Runtimes write an entry for each piece of code they make, and never report when code is gone:
//! where entries overlap, the later one is right. Entries are kept in layers, each sorted and
//! without overlaps, the newest last. A layer is merged into the one before when it has half its
//! size, so that there are few layers and each entry is moved only a few times, however small the
//! steps in which the map grows.

use std::collections::BinaryHeap;

/// A range of code, of `len` bytes at address `start` of the process, and the entry that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub len: u32,
    /// Position of the entry; a later entry has a larger number.
    pub entry: u32,
}

const _: () = assert!(size_of::<Span>() == 16);

impl Span {
    /// The first address after the code.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.len))
    }
}

/// Maximum number of entries, which take 64 MiB. The longest map seen, of a V8 that ran for days,
/// had a million.
pub const SPANS_MAX: usize = 4 << 20;

/// The entries of one map.
#[derive(Debug, Default)]
pub struct Spans {
    layers: Vec<Vec<Span>>,
}

impl Spans {
    /// Adds new entries, which must be later than all before. Entries beyond [`SPANS_MAX`] are
    /// ignored.
    pub fn add(&mut self, mut batch: Vec<Span>) {
        let room = SPANS_MAX.saturating_sub(self.len());
        batch.truncate(room);
        if batch.is_empty() {
            return;
        }
        let mut layer = flatten(batch);
        while let Some(below) = self.layers.pop_if(|below| below.len() <= layer.len() * 2) {
            layer = overlay(&below, &layer);
        }
        layer.shrink_to_fit();
        self.layers.push(layer);
    }

    /// Returns the latest entry that contains the address.
    pub fn find(&self, addr: u64) -> Option<Span> {
        let in_layer = |layer: &Vec<Span>| {
            let behind = layer.partition_point(|span| span.start <= addr);
            let span = layer.get(behind.checked_sub(1)?)?;
            (addr < span.end()).then_some(*span)
        };
        self.layers.iter().rev().find_map(in_layer)
    }

    /// Number of ranges; entries without overlaps have one each.
    pub fn len(&self) -> usize {
        self.layers.iter().map(Vec::len).sum()
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let spans: usize = self.layers.iter().map(Vec::capacity).sum();
        spans * size_of::<Span>()
    }
}

/// Sorts entries and removes overlaps: where two overlap, the later one wins.
fn flatten(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.len > 0);
    // Entries are in their order, and a stable sort keeps that.
    spans.sort_by_key(|span| span.start);
    if spans.is_sorted_by(|a, b| a.end() <= b.start) {
        return spans;
    }
    let mut sweep = Sweep {
        out: Vec::with_capacity(spans.len()),
        open: BinaryHeap::new(),
        at: 0,
    };
    let mut rest = spans.iter().peekable();
    while let Some(span) = rest.next() {
        sweep.advance(span.start);
        sweep.at = span.start;
        // Most entries overlap none and need not go through the heap.
        let is_alone = rest.peek().is_none_or(|next| span.end() <= next.start);
        if is_alone && sweep.open.is_empty() {
            sweep.out.push(*span);
        } else {
            sweep.open.push((span.entry, span.end()));
        }
    }
    sweep.advance(u64::MAX);
    sweep.out
}

struct Sweep {
    out: Vec<Span>,
    /// Entries that have begun and may not have ended: number and end, the latest on top.
    open: BinaryHeap<(u32, u64)>,
    at: u64,
}

impl Sweep {
    /// Writes everything before `limit`.
    fn advance(&mut self, limit: u64) {
        while self.at < limit {
            let Some(&(entry, end)) = self.open.peek() else {
                return;
            };
            if end <= self.at {
                self.open.pop();
                continue;
            }
            let stop = end.min(limit);
            push(&mut self.out, self.at, stop, entry);
            self.at = stop;
        }
    }
}

/// Lays `new` over `old`.
fn overlay(old: &[Span], new: &[Span]) -> Vec<Span> {
    let mut out = Vec::with_capacity(old.len() + new.len());
    let mut olds = old.iter().copied();
    let mut current = olds.next();
    for span in new {
        while let Some(before) = current.filter(|old| old.end() <= span.start) {
            out.push(before);
            current = olds.next();
        }
        if let Some(cut) = current.filter(|old| old.start < span.start) {
            push(&mut out, cut.start, span.start, cut.entry);
        }
        out.push(*span);
        while current.is_some_and(|old| old.end() <= span.end()) {
            current = olds.next();
        }
        if let Some(cut) = &mut current
            && cut.start < span.end()
        {
            cut.len -= (span.end() - cut.start) as u32;
            cut.start = span.end();
        }
    }
    out.extend(current);
    out.extend(olds);
    out
}

/// Appends a part of an entry, whose length fits as that of the entry does.
fn push(out: &mut Vec<Span>, start: u64, end: u64, entry: u32) {
    out.push(Span {
        start,
        len: (end - start) as u32,
        entry,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, len: u32, entry: u32) -> Span {
        Span { start, len, entry }
    }

    #[test]
    fn code_that_replaces_code() {
        let mut spans = Spans::default();
        spans.add(vec![span(100, 100, 1), span(120, 10, 2)]);
        spans.add(vec![span(150, 100, 3)]);
        for (addr, expected) in [
            (99, None),
            (100, Some(1)),
            (120, Some(2)),
            (130, Some(1)),
            (149, Some(1)),
            (150, Some(3)),
            (249, Some(3)),
            (250, None),
        ] {
            assert_eq!(spans.find(addr).map(|s| s.entry), expected, "{addr}");
        }
    }

    #[test]
    fn small_steps_leave_few_layers() {
        let mut spans = Spans::default();
        for entry in 0..10_000 {
            spans.add(vec![span(u64::from(entry) * 16, 16, entry)]);
        }
        assert!(spans.layers.len() < 20, "{}", spans.layers.len());
        assert_eq!(spans.len(), 10_000);
    }

    #[test]
    fn the_end_of_the_address_space() {
        let mut spans = Spans::default();
        spans.add(vec![span(u64::MAX - 8, 100, 1), span(u64::MAX - 4, 100, 2)]);
        assert_eq!(spans.find(u64::MAX - 5).map(|s| s.entry), Some(1));
        assert_eq!(spans.find(u64::MAX - 1).map(|s| s.entry), Some(2));
    }

    proptest! {
        /// Compares with the definition, evaluated at every address.
        #[test]
        fn the_latest_has_it(
            entries in proptest::collection::vec((0u64..80, 0u32..30), 0..60),
            steps in proptest::collection::vec(1usize..8, 60),
        ) {
            let all: Vec<Span> = (0..)
                .zip(&entries)
                .map(|(entry, &(start, len))| span(start, len, entry))
                .collect();
            let mut spans = Spans::default();
            let mut rest = all.as_slice();
            for step in steps {
                let (batch, behind) = rest.split_at(step.min(rest.len()));
                spans.add(batch.to_vec());
                rest = behind;
            }
            for layer in &spans.layers {
                prop_assert!(layer.is_sorted_by(|a, b| a.end() <= b.start));
            }
            for addr in 0..120 {
                let latest = all.iter().rfind(|s| s.start <= addr && addr < s.end());
                prop_assert_eq!(spans.find(addr).map(|s| s.entry), latest.map(|s| s.entry));
            }
        }
    }
}
