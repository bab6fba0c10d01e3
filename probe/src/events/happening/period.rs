//! How many events of one of the kernel's counters give one sample.
//!
//! The kernel could adapt that itself, to a number of samples per second (`attr.freq`), but what it
//! takes for the rate goes wrong for programs that have many events in a short time and then none:
//! periods grew so long that a program's functions had 58 or 98 % of page faults where they had
//! 75 %. So user space sets the period, by the counter beside it, and never the same one for long:
//! a program that always does the same must not be in step with it.

/// Number of samples per second of one CPU at which a period aims.
const SAMPLES_PER_SECOND: f64 = 1994.0;

/// Time between two changes.
const TURN_NS: u64 = 40_000_000;

/// The part of a turn after which a period differs most from the one before it: the golden ratio,
/// whose multiples fill the numbers from 0 to 1 evenly.
const STEP: f64 = 0.618_033_988_749_895;

/// The period of one CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// The time and the count at the last change.
    at_ns: u64,
    count: u64,
    /// From 0 to 1; where the next period lies around the aim.
    place: f64,
    events: u64,
}

impl Period {
    /// Begins with a sample of each event, as long as it is not known how often they happen.
    pub fn begin(now_ns: u64) -> Self {
        Self {
            at_ns: now_ns,
            count: 0,
            place: 0.5,
            events: 1,
        }
    }

    /// Number of events that give one sample.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the new period if it is time for one and it is another than before. `read` returns
    /// how many events there were so far.
    pub fn follow(&mut self, now_ns: u64, read: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        if passed_ns < TURN_NS {
            return None;
        }
        let count = read()?;
        let per_second = count.saturating_sub(self.count) as f64 * 1e9 / passed_ns as f64;
        (self.at_ns, self.count) = (now_ns, count);
        self.place = (self.place + STEP).fract();
        // From three quarters of the aim to five quarters.
        let events = per_second / SAMPLES_PER_SECOND * (0.75 + self.place / 2.0);
        let events = in_no_step(events as u64);
        let is_new = events != self.events;
        self.events = events;
        is_new.then_some(events)
    }
}

/// Returns the greatest number up to this one, 1 at least, that 2, 3 and 5 do not divide. Threads
/// that take turns have events in turn: if a period were a multiple of their number, all its samples
/// would be of the same thread.
fn in_no_step(events: u64) -> u64 {
    let is_fit = |events: &u64| {
        ![2, 3, 5]
            .iter()
            .any(|divisor| events.is_multiple_of(*divisor))
    };
    (1..=events).rev().find(is_fit).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the period after each of 50 turns in which this number of events happens per second.
    fn periods(per_second: u64) -> Vec<u64> {
        let mut period = Period::begin(0);
        let turns = 1..=50;
        let followed = turns.map(|turn| {
            let now_ns = turn * TURN_NS;
            period.follow(now_ns, || Some(per_second * now_ns / 1_000_000_000));
            period.events()
        });
        followed.collect()
    }

    #[test]
    fn rare_events_all_give_a_sample() {
        assert_eq!(periods(1000), [1; 50]);
    }

    #[test]
    fn frequent_events_give_about_as_many_samples_and_never_in_the_same_step() {
        let periods = periods(1_994_000);
        assert!(periods.iter().all(|events| (740..=1250).contains(events)));
        let mean = periods.iter().sum::<u64>() / 50;
        assert!((980..1020).contains(&mean), "{mean}");
        let mut different = periods.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 30, "{periods:?}");
    }

    #[test]
    fn no_period_is_in_step_with_a_few_threads() {
        assert_eq!(
            [0, 1, 6, 7, 8, 15, 30, 1000].map(in_no_step),
            [1, 1, 1, 7, 7, 13, 29, 997]
        );
    }

    #[test]
    fn after_a_burst_every_event_gives_a_sample_again() {
        let mut period = Period::begin(0);
        assert!(period.follow(TURN_NS, || Some(1_000_000)).is_some());
        assert_eq!(period.follow(TURN_NS + 1, || unreachable!()), None);
        assert_eq!(period.follow(2 * TURN_NS, || Some(1_000_010)), Some(1));
    }
}
