//! The counts of a probe in some period: a second, a window, or the whole run.

use std::collections::BTreeMap;

/// Calls of a probed function in some period. All sums are saturating, as a file may contain any
/// number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTally {
    /// Number of calls that began.
    pub calls: u64,
    /// Number of calls that ended, of those that began while the probe was there.
    pub returns: u64,
    /// Number of ends of calls that began before the probe was placed.
    pub strangers: u64,
    /// Number of calls that ended and were shorter than the requested minimum.
    pub short: u64,
    /// Number of hits by processes that are not targets.
    pub others: u64,
    /// Number of hits of a tracepoint that are in no other count: the kernel skipped them, as it
    /// was already running the probe's program on that CPU.
    pub missed: u64,
    /// Number of stacks that were taken.
    pub stacks: u64,
    /// Number of stacks that were due and could not be taken, or not be stored.
    pub stacks_lost: u64,
    /// Number of values for which there was no room.
    pub values_lost: u64,
    /// Sum of the durations of the calls that ended.
    pub sum_ns: u64,
    /// Duration of the longest of them.
    pub max_ns: u64,
    /// Number of samples of the clock that had the function on their stack.
    pub cpu_samples: u64,
    /// CPU time that these samples stand for.
    pub cpu_ns: u64,
    /// Calls by duration: from, below, in nanoseconds.
    pub buckets: BTreeMap<(u64, u64), u64>,
    /// The values that were read, in the order of [`values`](super::ProbeAbout::values).
    pub values: Vec<ValueTally>,
    /// Number of times each stack was taken, by its number in the record.
    pub callers: BTreeMap<u32, u64>,
    /// Number of stacks taken in each thread, by its number in the record.
    pub threads: BTreeMap<u32, u64>,
}

/// Readings of one value in some period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueTally {
    /// Number of times it could not be read.
    pub unreadable: u64,
    /// Number of times it had each text, by the number of the text in the record.
    pub texts: BTreeMap<u32, u64>,
}

/// Adds the counts of `more` to those of `sum`.
fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, count) in more {
        let all = sum.entry(*key).or_default();
        *all = all.saturating_add(*count);
    }
}

/// Returns the counts of `now` minus those of `before`.
fn fresh_counts<K: Ord + Copy>(
    now: &BTreeMap<K, u64>,
    before: &BTreeMap<K, u64>,
) -> BTreeMap<K, u64> {
    let fresh = now.iter().map(|(key, count)| {
        let old = before.get(key).copied().unwrap_or(0);
        (*key, count.saturating_sub(old))
    });
    fresh.filter(|(_, count)| *count > 0).collect()
}

impl CallTally {
    /// Whether nothing was counted, whatever the number of values.
    pub fn is_nothing(&self) -> bool {
        let is_empty = |value: &ValueTally| *value == ValueTally::default();
        let without_values = CallTally {
            values: Vec::new(),
            ..self.clone()
        };
        self.values.iter().all(is_empty) && without_values == Self::default()
    }

    /// Returns the counts since another moment; both tallies must start at the same time. The
    /// longest call is known only as exactly as its bucket, unless it is the longest of all.
    pub fn since(&self, before: &CallTally) -> CallTally {
        let buckets = fresh_counts(&self.buckets, &before.buckets);
        let longest = buckets.keys().next_back().map_or(0, |(_, below)| *below);
        let values = self.values.iter().enumerate().map(|(slot, value)| {
            let old = before.values.get(slot);
            let none = BTreeMap::new();
            ValueTally {
                unreadable: (value.unreadable).saturating_sub(old.map_or(0, |old| old.unreadable)),
                texts: fresh_counts(&value.texts, old.map_or(&none, |old| &old.texts)),
            }
        });
        CallTally {
            calls: self.calls.saturating_sub(before.calls),
            returns: self.returns.saturating_sub(before.returns),
            strangers: self.strangers.saturating_sub(before.strangers),
            short: self.short.saturating_sub(before.short),
            others: self.others.saturating_sub(before.others),
            missed: self.missed.saturating_sub(before.missed),
            stacks: self.stacks.saturating_sub(before.stacks),
            stacks_lost: self.stacks_lost.saturating_sub(before.stacks_lost),
            values_lost: self.values_lost.saturating_sub(before.values_lost),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
            max_ns: if self.max_ns > before.max_ns {
                self.max_ns
            } else {
                self.max_ns.min(longest)
            },
            cpu_samples: self.cpu_samples.saturating_sub(before.cpu_samples),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            buckets,
            values: values.collect(),
            callers: fresh_counts(&self.callers, &before.callers),
            threads: fresh_counts(&self.threads, &before.threads),
        }
    }

    /// Adds the counts of another period.
    pub fn add(&mut self, more: &CallTally) {
        let sums = [
            (&mut self.calls, more.calls),
            (&mut self.returns, more.returns),
            (&mut self.strangers, more.strangers),
            (&mut self.short, more.short),
            (&mut self.others, more.others),
            (&mut self.missed, more.missed),
            (&mut self.stacks, more.stacks),
            (&mut self.stacks_lost, more.stacks_lost),
            (&mut self.values_lost, more.values_lost),
            (&mut self.sum_ns, more.sum_ns),
            (&mut self.cpu_samples, more.cpu_samples),
            (&mut self.cpu_ns, more.cpu_ns),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.max_ns = self.max_ns.max(more.max_ns);
        add_counts(&mut self.buckets, &more.buckets);
        add_counts(&mut self.callers, &more.callers);
        add_counts(&mut self.threads, &more.threads);
        if self.values.len() < more.values.len() {
            self.values
                .resize_with(more.values.len(), ValueTally::default);
        }
        for (sum, more) in self.values.iter_mut().zip(&more.values) {
            sum.unreadable = sum.unreadable.saturating_add(more.unreadable);
            add_counts(&mut sum.texts, &more.texts);
        }
    }

    /// The bucket of the call at this quantile: from and below, in nanoseconds; `share` is between
    /// 0 and 1. `None` before a call has ended.
    pub fn quantile(&self, share: f64) -> Option<(u64, u64)> {
        let all = self
            .buckets
            .values()
            .fold(0u64, |all, calls| all.saturating_add(*calls));
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut before = 0u64;
        let found = self.buckets.iter().find(|(_, calls)| {
            before = before.saturating_add(**calls);
            before >= wanted
        });
        found.map(|(bounds, _)| *bounds)
    }

    /// A quantile as one number: the middle of its bucket, but at most the longest call.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let (from, below) = self.quantile(share)?;
        Some((from + below.saturating_sub(from) / 2).min(self.max_ns.max(from)))
    }

    /// Number of calls that began and did not end in this period.
    pub fn unreturned(&self) -> u64 {
        self.calls.saturating_sub(self.returns)
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        // A leaf node of such a tree has eleven entries, of which some are unused.
        let of = |entries: usize, each: usize| entries * each * 3 / 2;
        let values = self.values.iter().map(|value| of(value.texts.len(), 12));
        size_of::<Self>()
            + of(self.buckets.len(), 24)
            + of(self.callers.len() + self.threads.len(), 12)
            + self.values.len() * size_of::<ValueTally>()
            + values.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_buckets_of_their_calls() {
        let mut tally = CallTally::default();
        assert_eq!(tally.quantile(0.5), None);
        for (from, calls) in [(1_000, 50), (2_000, 40), (4_000, 9), (8_000, 1)] {
            tally.buckets.insert((from, from * 5 / 4), calls);
        }
        let of = |share| tally.quantile(share).map(|bounds| bounds.0);
        assert_eq!(
            [0.0, 0.5, 0.51, 0.9, 0.99, 1.0].map(of),
            [1_000, 1_000, 2_000, 2_000, 4_000, 8_000].map(Some)
        );
        assert_eq!(tally.quantile(1.0), Some((8_000, 10_000)));
        tally.max_ns = 9_500;
        assert_eq!(tally.quantile_ns(1.0), Some(9_000), "the middle");
        tally.max_ns = 8_500;
        assert_eq!(tally.quantile_ns(1.0), Some(8_500), "none took longer");
    }

    #[test]
    fn sums_are_of_all_that_was_counted_and_never_overflow() {
        let one = CallTally {
            calls: u64::MAX - 1,
            max_ns: 7,
            callers: [(0, 2), (3, 1)].into(),
            values: vec![ValueTally {
                unreadable: 1,
                texts: [(1, 5)].into(),
            }],
            ..CallTally::default()
        };
        let mut sum = CallTally::default();
        sum.add(&one);
        assert_eq!(sum, one);
        assert_eq!(sum.since(&CallTally::default()), one);
        assert!(sum.since(&one).is_nothing() && !one.is_nothing());
        sum.add(&one);
        assert_eq!((sum.calls, sum.max_ns), (u64::MAX, 7));
        assert_eq!(sum.callers, [(0, 4), (3, 2)].into());
        assert_eq!(sum.values[0].texts, [(1, 10)].into());
    }
}
