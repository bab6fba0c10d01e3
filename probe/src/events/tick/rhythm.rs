//! The *rhythm* of one CPU's clocks: when they tick, chosen so that no program can be in step with
//! them.
//!
//! A clock with one period finds a program of the same period always at the same place: 60 and 40
//! percent of its time look like 100 and 0. So a CPU has two clocks, and
//!
//! 1. their frequencies are drawn at random, and always add up to the rate `r`:
//!    `f1 = r/2 (1 - u)`, `f2 = r/2 (1 + u)`, `u` in [`APART`];
//! 2. at random moments, about four times a second ([`turn_ns`]; less often on an idle machine), they
//!    are restarted with another `u`.
//!
//! ```text
//!    began                      began anew
//! 1    |-------|-------|-------|----:-----------|-----------|-----
//! 2    |----|----|----|----|----|--:-------|-------|-------|------
//!                                 lost
//! ```
//!
//! The time that a clock has waited when it is restarted is lost, half a period on average. The
//! number of ticks is known, because the kernel keeps to the period; the difference to `r` times
//! the time is owed, and compensated by the next frequencies. So the mean rate is `r`, off by no
//! more than a few ticks however long the run is, and the probability that a moment is hit does not
//! depend on what runs then.

use crate::random::Random;
use std::ops::Range;

/// How far the frequencies of the two clocks are apart. Not from 0 on: they begin together, and
/// would stay together. With these values the periods, 1.3 to 4 times that of the rate, go through
/// all phases of any rhythm near it.
const APART: Range<f64> = 0.1..0.5;

/// Maximum change of the frequencies, as a part of the rate, for compensating what is owed.
const CORRECTION_MAX: f64 = 0.1;

const SECOND_NS: f64 = 1e9;

/// How long the clocks of one of `cpus` CPUs keep their periods, on average: at least 25 ticks,
/// which can compensate for the lost one; on large machines longer, because another CPU has to be
/// interrupted for each change.
pub fn turn_ns(rate_hz: u32, cpus: usize) -> u64 {
    const SHORTEST_NS: u64 = 250_000_000;
    const TICKS: u64 = 25;
    const TURNS_PER_SECOND: u64 = 64;
    let of_ticks = TICKS * 1_000_000_000 / u64::from(rate_hz.max(1));
    let of_cpus = cpus as u64 * 1_000_000_000 / TURNS_PER_SECOND;
    SHORTEST_NS.max(of_ticks).max(of_cpus)
}

/// When the two clocks of one CPU tick.
#[derive(Debug)]
pub struct Rhythm {
    random: Random,
    rate_hz: f64,
    clocks: [Beat; 2],
    /// Number of ticks that the rate requires and that did not occur.
    owed: f64,
}

/// The ticks of one clock: each `period_ns`, counted from `began_ns`.
#[derive(Debug, Clone, Copy, Default)]
struct Beat {
    began_ns: u64,
    period_ns: u64,
}

impl Rhythm {
    /// A rhythm that has not begun.
    pub fn new(rate_hz: u32) -> Self {
        Self::with(rate_hz, Random::new())
    }

    fn with(rate_hz: u32, random: Random) -> Self {
        let mut rhythm = Self {
            random,
            rate_hz: 0.0,
            clocks: [Beat::default(); 2],
            owed: 0.0,
        };
        rhythm.set_rate(rate_hz);
        rhythm
    }

    /// The periods of both clocks, in nanoseconds.
    pub fn periods(&self) -> [u64; 2] {
        self.clocks.map(|clock| clock.period_ns)
    }

    /// Draws periods for another rate. What was owed at the previous rate is dropped.
    pub fn set_rate(&mut self, rate_hz: u32) {
        self.rate_hz = f64::from(rate_hz.max(1));
        self.owed = 0.0;
        let periods = self.random_periods(self.rate_hz);
        for (clock, period_ns) in self.clocks.iter_mut().zip(periods) {
            clock.period_ns = period_ns;
        }
    }

    /// Records that the clocks began with their periods at these times.
    pub fn begin(&mut self, began_ns: [u64; 2]) {
        for (clock, began_ns) in self.clocks.iter_mut().zip(began_ns) {
            clock.began_ns = began_ns;
        }
    }

    /// Draws the next periods, for about `next_ns` from now on.
    pub fn next_periods(&mut self, now_ns: u64, next_ns: u64) -> [u64; 2] {
        let owed = self.owed_at([now_ns; 2]);
        let correction_hz = owed * SECOND_NS / next_ns.max(1) as f64;
        let limit_hz = CORRECTION_MAX * self.rate_hz;
        self.random_periods(self.rate_hz + correction_hz.clamp(-limit_hz, limit_hz))
    }

    /// Records that the clocks have ticked by their periods up to these times, and continue with
    /// other periods.
    pub fn turn(&mut self, periods: [u64; 2], began_ns: [u64; 2]) {
        self.owed = self.owed_at(began_ns);
        let next = periods.into_iter().zip(began_ns);
        for (clock, (period_ns, began_ns)) in self.clocks.iter_mut().zip(next) {
            *clock = Beat {
                began_ns,
                period_ns,
            };
        }
    }

    /// Returns what is owed when the clocks have ticked by their periods up to these times.
    fn owed_at(&self, until_ns: [u64; 2]) -> f64 {
        let mut owed = self.owed;
        for (clock, until_ns) in self.clocks.iter().zip(until_ns) {
            let time_ns = until_ns.saturating_sub(clock.began_ns);
            let ticks = time_ns / clock.period_ns;
            owed += self.rate_hz / 2.0 * time_ns as f64 / SECOND_NS - ticks as f64;
        }
        owed
    }

    fn random_periods(&mut self, rate_hz: f64) -> [u64; 2] {
        let apart = self.random.between(APART.start, APART.end);
        [1.0 - apart, 1.0 + apart]
            .map(|part| (2.0 * SECOND_NS / (rate_hz * part)).round().max(1.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which a CPU is hit in a number of seconds, computed as in the kernel.
    fn ticks(rate_hz: u32, seconds: u64, seed: u64) -> Vec<u64> {
        let mut rhythm = Rhythm::with(rate_hz, Random::seeded(seed));
        let mut moments = Random::seeded(seed + 1_000);
        let mut ticks = Vec::new();
        let turn_ns = turn_ns(rate_hz, 2);
        let mut now_ns = 0;
        rhythm.begin([now_ns; 2]);
        while now_ns < seconds * 1_000_000_000 {
            let turn = now_ns + moments.between(0.5 * turn_ns as f64, 1.5 * turn_ns as f64) as u64;
            for period in rhythm.periods() {
                ticks.extend(
                    (1..)
                        .map(|n| now_ns + n * period)
                        .take_while(|t| *t <= turn),
                );
            }
            now_ns = turn;
            let periods = rhythm.next_periods(now_ns, turn_ns);
            rhythm.turn(periods, [now_ns; 2]);
        }
        ticks.retain(|tick| *tick < seconds * 1_000_000_000);
        ticks.sort_unstable();
        ticks
    }

    #[test]
    fn the_rate_is_kept() {
        for (rate_hz, seconds) in [(19, 100), (99, 10), (99, 1_000), (999, 10), (9_999, 3)] {
            for seed in 0..20 {
                let expected = f64::from(rate_hz) * seconds as f64;
                let count = ticks(rate_hz, seconds, seed).len() as f64;
                assert!((count - expected).abs() < 9.0, "{count} of {expected}");
            }
        }
    }

    /// Rhythms of programs around that of the clock, and far from it: 60 percent of each period
    /// count as 60 percent, within the confidence band of the same number of random ticks.
    #[test]
    fn no_program_keeps_in_step() {
        for rate_hz in [99, 999] {
            let tick_ns = 1e9 / f64::from(rate_hz);
            for periods in [0.125, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0, 1.5, 2.0, 3.0, 8.0] {
                let period_ns = tick_ns * periods;
                let mut deviations = Vec::new();
                for seed in 0..40 {
                    let ticks = ticks(rate_hz, 20, seed);
                    let is_first = |tick: &&u64| (**tick as f64 / period_ns).fract() < 0.6;
                    let first = ticks.iter().filter(is_first).count() as f64;
                    let all = ticks.len() as f64;
                    let deviation = (0.6f64 * 0.4 / all).sqrt();
                    deviations.push((first / all - 0.6) / deviation);
                }
                let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
                let square = deviations.iter().map(|d| d * d).sum::<f64>();
                let spread = (square / deviations.len() as f64).sqrt();
                println!("{rate_hz} Hz, {periods:.3}: {mean:+.2} ± {spread:.2} deviations");
                assert!(mean.abs() < 0.6, "{periods}: {mean:.2}");
                assert!(spread < 1.6, "{periods}: {spread:.2}");
            }
        }
    }
}
