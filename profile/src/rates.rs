//! *Rates*: how samples are weighed if the sampling rate was changed during a recording.
//!
//! A sample stands for the time to the next tick: at 99 Hz for ten times as much as at 999 Hz.
//! Samples of a time range with several rates are counted as if all of it had been sampled at the
//! highest of them: each sample at a lower rate counts as often as it would have occurred at the
//! highest rate. So shares and CPU time are right whatever the window, no sample is left out, and a
//! time range with one rate is counted as it is.
//!
//! Counts are whole numbers. If one sample stands for 10.09 of the others, most count as 10 and
//! every eleventh as 11. Which ones do depends only on their position in their second, so every
//! query counts them the same.

use crate::time::{STAMP_NS, STAMPS_PER_SECOND, Stamps, TimeRange};
use crate::{Metric, Rates};

/// How the samples of a time range are weighed against each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weighing {
    /// The rate at which all samples are counted; 0 if unknown.
    hz: u32,
    /// The rates, each with its first stamp, rising. Empty if the rate never changed.
    stretches: Vec<(u64, u32)>,
}

/// The weighing within one second. Made by [`Weighing::in_second`], for a second that has samples
/// of another rate than the highest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InSecond<'a> {
    weighing: &'a Weighing,
    /// Where the second begins in the pattern of roundings: a hash of its number.
    phase: u64,
}

impl Weighing {
    /// Weighs samples to the highest rate within `range`.
    pub(crate) fn new(rates: &Rates, range: TimeRange) -> Self {
        let changes = rates.changes.iter();
        let is_known = |hz: u32| hz > 0;
        if rates.changes.is_empty()
            || !is_known(rates.first_hz)
            || !changes.clone().all(|change| is_known(change.hz))
        {
            return Self {
                hz: rates.first_hz,
                stretches: Vec::new(),
            };
        }
        let mut stretches = vec![(0, rates.first_hz)];
        let mut before = rates.first_hz;
        for change in changes {
            // A hundredth of a second with both rates is counted at the higher one: too low a
            // weight for one slow sample is a smaller error than too high a weight for many fast
            // ones.
            let from = if change.hz > before {
                change.from_ns / STAMP_NS
            } else {
                change.from_ns.div_ceil(STAMP_NS)
            };
            stretches.push((from, change.hz));
            before = change.hz;
        }
        let Stamps { first, last } = range.stamps();
        let mut weighing = Self { hz: 0, stretches };
        let within = weighing.rates(first, last).max();
        weighing.hz = within.unwrap_or(rates.first_hz);
        weighing
    }

    /// Samples per second of a busy CPU, as they are counted.
    pub(crate) fn hz(&self) -> u32 {
        self.hz
    }

    /// The rates of the stamps from `first` to `last`.
    fn rates(&self, first: u64, last: u64) -> impl Iterator<Item = u32> {
        let start = self.stretches.partition_point(|(from, _)| *from <= first);
        let stretches = self.stretches[start.saturating_sub(1)..].iter();
        stretches
            .take_while(move |(from, _)| *from <= last.max(first))
            .map(|(_, hz)| *hz)
    }

    /// The rate at one stamp.
    fn rate_at(&self, stamp: u64) -> u32 {
        self.rates(stamp, stamp).last().unwrap_or(self.hz)
    }

    /// The weighing within a second; `None` if its samples are counted as they are.
    #[inline]
    pub(crate) fn in_second(&self, second: u64) -> Option<InSecond<'_>> {
        if self.stretches.is_empty() {
            return None;
        }
        let first = second * STAMPS_PER_SECOND;
        let mut rates = self.rates(first, first + STAMPS_PER_SECOND - 1);
        let phase = second.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        rates.any(|hz| hz != self.hz).then_some(InSecond {
            weighing: self,
            phase,
        })
    }

    /// The factor by which a sample with that stamp counts.
    pub(crate) fn factor(&self, stamp: u64) -> f64 {
        if self.stretches.is_empty() {
            1.0
        } else {
            f64::from(self.hz) / f64::from(self.rate_at(stamp))
        }
    }
}

impl InSecond<'_> {
    /// Returns the weighed count of a sample with that stamp, which is number `at` of its second
    /// and was stored with `weight`.
    #[inline]
    pub(crate) fn weigh(&self, at: usize, stamp: u64, weight: u64) -> u64 {
        let own = u64::from(self.weighing.rate_at(stamp));
        let hz = u64::from(self.weighing.hz);
        if own == hz {
            return weight;
        }
        // The seconds begin at different places of the pattern, as otherwise each would round the
        // same way.
        let phase = self.phase % own;
        // The sum of the first `at` samples. Its differences are whole numbers, and their sum is
        // never off by more than one.
        let until = |at: u64| (at * hz + phase) / own;
        let at = at as u64;
        weight.saturating_mul(until(at + 1) - until(at))
    }
}

/// Statistics of samples that do not all count the same: they were taken at several rates and are
/// counted at one, or they stand for different numbers of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reweighed {
    /// Number of samples that were really taken.
    pub taken: u64,
    /// Number of equally weighted samples that are as much evidence as one counted sample; used by
    /// tests. Kish's effective sample size.
    pub evidence: f64,
    /// Like `evidence`, but only for samples that were drawn at random; used by bands. Infinite if
    /// nothing was drawn at random, because the stack of every wait was taken.
    pub drawn: f64,
}

impl Reweighed {
    /// Returns the statistics for samples of which some are of waits, where chance had a smaller
    /// part: `squares` is the part of the sum of squares that belongs to waits, `by_chance` the
    /// part of it that is due to chance. `sum` is what all samples stand for.
    pub(crate) fn with_waits(self, sum: f64, squares: f64, by_chance: f64) -> Self {
        let rest = (sum / self.evidence - squares).max(0.0);
        // A remainder that small is a rounding error of the difference of two large sums.
        let rest = if rest < squares * 1e-9 { 0.0 } else { rest };
        Self {
            drawn: sum / (rest + by_chance),
            ..self
        }
    }
}

/// Collects the statistics for [`Reweighed`] while samples are counted.
pub(crate) struct Evidence<'a> {
    /// Why samples do not all count the same; `None` if they do.
    unlike: Option<Unlike<'a>>,
    /// Number of samples that count.
    taken: u64,
    /// Sum of their weights.
    sum: f64,
    /// Sum of the squares of their weights.
    squares: f64,
}

/// Why samples do not count the same.
enum Unlike<'a> {
    /// They were taken at several rates.
    Rates(&'a Weighing),
    /// Each stands for all events since the one before, or for the time that a thread waited.
    /// (Weights in other units are sums of unknown samples.)
    Events,
    /// Their weights are times, bytes or something else, and the number of samples in each is
    /// unknown.
    Unknown,
}

impl<'a> Evidence<'a> {
    /// Starts collecting. If samples count the same, which is nearly always, nothing is added up.
    pub(crate) fn new(weighing: &'a Weighing, metric: &Metric) -> Self {
        let unlike = if metric.counts_events() || metric.is_waiting() {
            Some(Unlike::Events)
        } else if !metric.counts_samples() {
            Some(Unlike::Unknown)
        } else if !weighing.stretches.is_empty() {
            Some(Unlike::Rates(weighing))
        } else {
            None
        };
        Self {
            unlike,
            taken: 0,
            sum: 0.0,
            squares: 0.0,
        }
    }

    /// Adds one sample. If the rate changed, `weight` is the factor rounded to a whole number, so
    /// its square is computed from the factor itself.
    #[inline]
    pub(crate) fn add(&mut self, stamp: u64, weight: u64) {
        let Some(unlike) = &self.unlike else {
            return;
        };
        self.taken += u64::from(weight > 0);
        let weight = weight as f64;
        self.sum += weight;
        self.squares += weight
            * match unlike {
                Unlike::Rates(weighing) => weighing.factor(stamp),
                Unlike::Events => weight,
                Unlike::Unknown => 0.0,
            };
    }

    /// Whether the number of samples is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.unlike, Some(Unlike::Unknown))
    }

    /// The statistics. Kish's effective size is sum² / squares for `sum` samples, so sum / squares
    /// for each.
    pub(crate) fn reweighed(&self) -> Option<Reweighed> {
        (self.squares != self.sum && !self.is_unknown()).then_some(Reweighed {
            taken: self.taken,
            evidence: self.sum / self.squares,
            drawn: self.sum / self.squares,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(changes: &[(u64, u32)]) -> Rates {
        let mut rates = Rates::always(99);
        for (seconds, hz) in changes {
            rates.change(seconds * 1_000_000_000, *hz);
        }
        rates
    }

    #[test]
    fn changes_are_kept_in_order_and_only_where_there_is_one() {
        let mut rates = rates(&[(10, 99), (20, 999), (20, 499), (30, 499), (40, 49)]);
        let at = |rates: &Rates, seconds: u64| rates.at(seconds * 1_000_000_000);
        assert_eq!(rates.changes.len(), 2);
        assert_eq!([19, 20, 39, 40].map(|s| at(&rates, s)), [99, 499, 499, 49]);
        rates.forget_before(35_000_000_000);
        assert_eq!((rates.first_hz, rates.changes.len()), (499, 1));
        assert_eq!(at(&rates, 50), 49);
    }

    #[test]
    fn all_is_counted_at_the_highest_rate_of_the_time() {
        let rates = rates(&[(20, 999), (30, 19)]);
        let second = |n: u64| n * 1_000_000_000;
        let hz = |from: u64, to: u64| {
            Weighing::new(&rates, TimeRange::between(second(from), second(to))).hz()
        };
        assert_eq!([hz(0, 10), hz(10, 25), hz(25, 40)], [99, 999, 999]);
        assert_eq!(hz(31, 40), 19);
        assert_eq!(Weighing::new(&rates, TimeRange::ALL).hz(), 999);
    }

    #[test]
    fn many_samples_weigh_what_they_should() {
        let rates = rates(&[(1_000, 499)]);
        let weighing = Weighing::new(&rates, TimeRange::ALL);
        let mut sum = 0;
        for second in 0..1_000 {
            let of_second = weighing.in_second(second).expect("at another rate");
            for at in 0..99 {
                let weight = of_second.weigh(at as usize, second * STAMPS_PER_SECOND + at, 1);
                assert!((5..=6).contains(&weight), "{weight}");
                sum += weight;
            }
        }
        assert!((i64::from(sum as u32) - 499_000).abs() < 500, "{sum}");
        assert!(weighing.in_second(1_001).is_none());
    }
}
