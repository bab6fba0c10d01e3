//! The counts of a probe, summed over all CPUs.

use probe_ebpf::calls::{TEXT_BYTES, Tally, TextKey, histogram};
use std::ops::Deref;

/// The counts of one probe since it was placed.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    tally: Tally,
    /// Number of calls that began and ended.
    pub returns: u64,
    /// Number of hits of a tracepoint that are in no other count: the kernel skipped them because
    /// the probe's program was already running on that CPU.
    pub missed: u64,
}

/// Counters are accessed as those of one CPU.
impl Deref for Reading {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        &self.tally
    }
}

impl Reading {
    pub(super) fn of<'t>(tallies: impl Iterator<Item = &'t Tally>) -> Self {
        let mut all = Tally::ZERO;
        for tally in tallies {
            all.add(tally);
        }
        Self {
            returns: all.histogram.iter().sum::<u64>() + all.short,
            tally: all,
            missed: 0,
        }
    }

    /// The bucket of the call at this quantile, as the first time in it and the first after it.
    /// `None` before a call has ended.
    pub fn quantile(&self, share: f64) -> Option<(u64, u64)> {
        let all: u64 = self.histogram.iter().sum();
        // The first call that at least this share of all calls does not exceed.
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut before = 0;
        let mut buckets = (0..).zip(&self.histogram);
        let (bucket, _) = buckets.find(|(_, calls)| {
            before += *calls;
            before >= wanted
        })?;
        Some(histogram::bounds(bucket))
    }

    /// A quantile of the durations of calls in nanoseconds: the middle of its bucket, but at most
    /// the longest call, which may be in the first part of the last bucket. `None` before a call
    /// has ended.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let (low, high) = self.quantile(share)?;
        Some((low + (high - low) / 2).min(self.longest_ns()))
    }

    /// Duration of the longest call. Two threads that end at once may overwrite each other's value;
    /// then the histogram is more exact.
    pub fn longest_ns(&self) -> u64 {
        let last = self.histogram.iter().rposition(|calls| *calls > 0);
        let at_least = last.map_or(0, |bucket| histogram::bounds(bucket as u32).0);
        self.max_ns.max(at_least)
    }

    /// Buckets that have calls: from, up to, number of calls.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let buckets = (0..).zip(&self.histogram).filter(|(_, calls)| **calls > 0);
        buckets.map(|(bucket, calls)| {
            let (low, high) = histogram::bounds(bucket);
            (low, high, *calls)
        })
    }
}

/// The values of one probe that were read.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// Numbers, unsorted.
    pub numbers: Vec<Number>,
    /// Texts, unsorted.
    pub texts: Vec<Text>,
}

/// A value that was read at calls, and at how many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Index of the value in the orders.
    pub slot: usize,
    /// The value as 64 bits; the type of the order says how to interpret it.
    pub number: u64,
    pub count: u64,
}

/// A text that was read at calls, and at how many of them. It comes from the target and is not safe
/// to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Index of the value in the orders.
    pub slot: usize,
    pub bytes: Vec<u8>,
    /// Whether it is longer than the bytes that were read.
    pub is_cut: bool,
    pub count: u64,
}

impl Text {
    pub(super) fn of(key: &TextKey, count: u64) -> Self {
        let len = usize::try_from(key.len).unwrap_or(usize::MAX);
        let mut bytes = key.bytes[..len.min(TEXT_BYTES)].to_vec();
        // A text that ends with a zero was read with the zero.
        if bytes.last() == Some(&0) && len <= TEXT_BYTES {
            bytes.pop();
        }
        Self {
            slot: key.slot as usize,
            bytes,
            is_cut: len > TEXT_BYTES,
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_buckets_of_their_calls() {
        let nothing = Reading::of(std::iter::empty());
        assert_eq!(nothing.quantile(0.5), None);
        // The tallies of two CPUs.
        let mut tallies = [Tally::ZERO; 2];
        for ns in 1..=100u64 {
            let tally = &mut tallies[ns as usize % 2];
            tally.histogram[histogram::bucket(ns * 1000) as usize] += 1;
            tally.calls += 1;
        }
        let reading = Reading::of(tallies.iter());
        assert_eq!(reading.calls, 100);
        for (share, ns) in [(0.5, 50_000), (0.9, 90_000), (0.99, 99_000), (1.0, 100_000)] {
            let (low, high) = reading.quantile(share).unwrap();
            assert!(low <= ns && ns < high, "{share}: {low} to {high}");
        }
        assert!(reading.longest_ns() > 90_000);
        assert_eq!(reading.buckets().map(|bucket| bucket.2).sum::<u64>(), 100);
    }

    #[test]
    fn no_quantile_is_beyond_the_longest_call() {
        let mut tally = Tally::ZERO;
        // Just after the beginning of its bucket.
        let ns = histogram::bounds(histogram::bucket(2_220_000_000)).0 + 1;
        tally.histogram[histogram::bucket(ns) as usize] = 1;
        tally.max_ns = ns;
        let reading = Reading::of([tally].iter());
        for share in [0.5, 0.9, 0.99, 1.0] {
            assert_eq!(reading.quantile_ns(share), Some(ns), "{share}");
        }
        assert_eq!(Reading::of([].iter()).quantile_ns(0.5), None);
    }
}
