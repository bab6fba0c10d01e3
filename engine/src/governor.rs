//! Keeps the cost of proftop below a budget. If it costs more, it gives up detail step by step:
//! first source lines and inlined functions, then samples. If it costs much less for a while, the
//! last step is undone.
//!
//! ```text
//! all ── no lines ── 1/2 of the rate ── 1/4 ── 1/8 ── 1/16
//!     ───► over the budget, for 10 s or since the last step (5 s at least)
//!     ◄─── below a third of it for a while, which doubles each time that it was too early
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Length of the most recent time by which the cost is judged.
const JUDGED: Duration = Duration::from_secs(10);

/// How often the CPU time is read.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// Minimum time between two steps, to see the effect of the first one.
const SETTLES: Duration = Duration::from_secs(5);

/// Time at the beginning that is not judged: the names of everything that runs are read then, which
/// is done once.
const BEGINS: Duration = Duration::from_secs(10);

/// A step is undone when proftop costs less than this share of the budget: doubling the rate
/// doubles the cost at most.
const MUCH_LESS: f64 = 1.0 / 3.0;

/// How long the cost has to be that low; below, the maximum of that time.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// Divisor of the rate at each step after the first.
const DIVISORS: [u32; 4] = [2, 4, 8, 16];

/// Lowest rate that a step may lead to, unless a lower one was requested.
const RATE_MIN: u32 = 4;

/// The detail that is given up; the default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frugality {
    /// Whether no more debug information is read for source lines and inlined functions.
    pub omits_lines: bool,
    /// Divisor of the requested rate.
    pub divisor: u32,
}

impl Default for Frugality {
    fn default() -> Self {
        Self {
            omits_lines: false,
            divisor: 1,
        }
    }
}

/// A step that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What is given up from now on.
    pub now: Frugality,
    /// Whether the step switches reading of lines off or on.
    pub is_about_lines: bool,
}

/// The state of the budget, for display.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// The budget in percent of one CPU.
    pub percent: f64,
    /// What is given up to keep it.
    pub given_up: Frugality,
    /// The requested rate.
    pub rate_hz: u32,
    /// Whether it was exceeded in the most recent time although there is nothing more to give up.
    pub is_exceeded: bool,
}

impl Budget {
    /// A sentence about what is given up, or about a budget that cannot be kept; `None` otherwise.
    pub fn note(self) -> Option<String> {
        let Budget {
            percent,
            given_up,
            rate_hz,
            is_exceeded,
        } = self;
        let mut without = Vec::new();
        if given_up.divisor > 1 {
            without.push(format!(
                "{} Hz instead of {rate_hz}",
                rate_hz / given_up.divisor
            ));
        }
        if given_up.omits_lines {
            without.push("new functions without source lines and inlined functions".into());
        }
        let without = without.join(", ");
        match (is_exceeded, without.is_empty()) {
            (true, true) => Some(format!(
                "proftop takes more than {percent}% of a CPU (--budget), and has nothing to give up"
            )),
            (true, false) => Some(format!(
                "proftop takes more than {percent}% of a CPU (--budget), though with {without}"
            )),
            (false, false) => Some(format!(
                "to take no more than {percent}% of a CPU (--budget): {without}"
            )),
            (false, true) => None,
        }
    }
}

/// The measurements so far, and the current step.
#[derive(Debug)]
pub struct Governor {
    percent: f64,
    /// Whether debug information is read at all.
    has_lines: bool,
    /// The possible steps in order; the first one gives up nothing.
    steps: Vec<Frugality>,
    step: usize,
    /// When the step was taken. Only costs after that are judged.
    since: Instant,
    /// CPU time used, as measured at these times.
    looks: VecDeque<(Instant, Duration)>,
    /// How long the cost has to be low before a step is undone.
    patience: Duration,
    /// Whether the last step was undoing one.
    was_relieved: bool,
    is_exceeded: bool,
}

impl Governor {
    /// Keeps to `percent` of one CPU from now on. `rate_hz` is the requested rate; `None` if it
    /// cannot be changed.
    pub fn new(percent: f64, rate_hz: Option<u32>, has_lines: bool, now: Instant) -> Self {
        Self {
            percent,
            has_lines,
            steps: steps(rate_hz, has_lines),
            step: 0,
            // The cost of the beginning is not judged.
            since: now + BEGINS,
            looks: VecDeque::new(),
            patience: PATIENCE,
            was_relieved: false,
            is_exceeded: false,
        }
    }

    /// What is given up now.
    pub fn given_up(&self) -> Frugality {
        self.steps[self.step]
    }

    /// Returns the state of the budget, for this requested rate.
    pub fn budget(&self, rate_hz: u32) -> Budget {
        Budget {
            percent: self.percent,
            given_up: self.given_up(),
            rate_hz,
            is_exceeded: self.is_exceeded,
        }
    }

    /// Sets the rate that the user requested; it is used until its cost is known.
    pub fn set_rate(&mut self, rate_hz: u32, now: Instant) {
        self.steps = steps(Some(rate_hz), self.has_lines);
        self.step = self.step.min(usize::from(self.has_lines));
        self.take_step(now);
    }

    /// Measures the CPU time used so far, unless that was done just before. Returns what is to be
    /// given up from now on, if that has changed.
    pub fn judge(&mut self, spent: impl FnOnce() -> Duration, now: Instant) -> Option<Change> {
        let is_early = |(last, _): &(Instant, Duration)| now - *last < LOOKS_EVERY;
        if now < self.since || self.looks.back().is_some_and(is_early) {
            return None;
        }
        let spent = spent();
        self.looks.push_back((now, spent));
        // One older measurement is kept, as the start of the judged time.
        while self.looks.len() > 2 && now - self.looks[1].0 >= JUDGED {
            self.looks.pop_front();
        }
        let (from, before) = *self.looks.front()?;
        let elapsed = now - from;
        if elapsed < SETTLES {
            return None;
        }
        let cost = 100.0 * spent.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64();
        let before = self.given_up();
        self.is_exceeded = cost > self.percent && self.step + 1 == self.steps.len();
        if cost > self.percent && self.step + 1 < self.steps.len() {
            if std::mem::take(&mut self.was_relieved) {
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
            }
            self.step += 1;
        } else if cost < self.percent * MUCH_LESS
            && self.step > 0
            && now - self.since >= self.patience
        {
            self.was_relieved = true;
            self.step -= 1;
        } else {
            return None;
        }
        self.take_step(now);
        let now = self.given_up();
        Some(Change {
            now,
            is_about_lines: now.omits_lines != before.omits_lines,
        })
    }

    /// Takes a step and drops earlier measurements, which do not apply to it.
    fn take_step(&mut self, now: Instant) {
        self.looks.clear();
        self.since = now;
    }
}

/// Returns the possible steps for a rate; the first one gives up nothing.
fn steps(rate_hz: Option<u32>, has_lines: bool) -> Vec<Frugality> {
    let mut steps = vec![Frugality::default()];
    if has_lines {
        steps.push(Frugality {
            omits_lines: true,
            divisor: 1,
        });
    }
    let divisors = DIVISORS.into_iter();
    let fits = |divisor: &u32| rate_hz.is_some_and(|hz| hz / divisor >= RATE_MIN);
    steps.extend(divisors.filter(fits).map(|divisor| Frugality {
        omits_lines: has_lines,
        divisor,
    }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated machine with its clock, on which proftop has a given cost.
    struct Machine {
        governor: Governor,
        begun: Instant,
        seconds: u64,
        spent: Duration,
    }

    impl Machine {
        fn new(percent: f64, rate_hz: Option<u32>) -> Self {
            let begun = Instant::now();
            Self {
                governor: Governor::new(percent, rate_hz, true, begun),
                begun,
                seconds: 0,
                spent: Duration::ZERO,
            }
        }

        fn now(&self) -> Instant {
            self.begun + Duration::from_secs(self.seconds)
        }

        /// Runs for some seconds at this cost, in percent. Returns the seconds of changes.
        fn run(&mut self, seconds: u64, percent: impl Fn(Frugality) -> f64) -> Vec<u64> {
            let mut changes = Vec::new();
            for _ in 0..seconds {
                self.seconds += 1;
                let percent = percent(self.governor.given_up());
                self.spent += Duration::from_secs_f64(percent / 100.0);
                if self.governor.judge(|| self.spent, self.now()).is_some() {
                    changes.push(self.seconds);
                }
            }
            changes
        }

        fn given_up(&self) -> (bool, u32) {
            let given_up = self.governor.given_up();
            (given_up.omits_lines, given_up.divisor)
        }
    }

    #[test]
    fn what_costs_little_stays_as_it_is() {
        let mut machine = Machine::new(1.0, Some(99));
        assert_eq!(machine.run(600, |_| 0.9), [0; 0]);
        assert_eq!(machine.given_up(), (false, 1));
    }

    #[test]
    fn the_beginning_may_cost_more() {
        let mut machine = Machine::new(1.0, Some(99));
        machine.run(8, |_| 50.0);
        assert_eq!(machine.run(60, |_| 0.5), [0; 0]);
    }

    #[test]
    fn detail_goes_step_by_step_until_it_fits() {
        let mut machine = Machine::new(1.0, Some(99));
        // Lines cost 1 %, samples 3 %.
        let cost = |given_up: Frugality| {
            f64::from(u8::from(!given_up.omits_lines)) + 3.0 / f64::from(given_up.divisor)
        };
        let changes = machine.run(120, cost);
        assert_eq!(machine.given_up(), (true, 4));
        assert_eq!(changes.len(), 3, "{changes:?}");
        for pair in changes.windows(2) {
            assert!(pair[1] - pair[0] >= SETTLES.as_secs(), "{changes:?}");
        }
        assert!(!machine.governor.budget(99).is_exceeded);
    }

    #[test]
    fn it_comes_back_when_it_costs_little_and_later_where_that_was_too_early() {
        let mut machine = Machine::new(1.0, Some(99));
        machine.run(60, |given_up| 1.5 / f64::from(given_up.divisor));
        assert_eq!(machine.given_up(), (true, 2));
        // 0.75 % is no reason to go back.
        assert_eq!(
            machine.run(300, |given_up| 1.5 / f64::from(given_up.divisor)),
            [0; 0]
        );
        assert_eq!(machine.run(200, |_| 0.1).len(), 2);
        assert_eq!(machine.given_up(), (false, 1));
        // With lines it always costs too much: each attempt comes later than the one before.
        let cost = |given_up: Frugality| if given_up.omits_lines { 0.1 } else { 2.0 };
        let changes = machine.run(3_000, cost);
        let tries: Vec<u64> = changes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let waits: Vec<u64> = tries.into_iter().filter(|gap| *gap >= 30).collect();
        assert!(
            waits.is_sorted() && *waits.last().unwrap() >= 600,
            "{waits:?}"
        );
    }

    #[test]
    fn what_cannot_be_given_up_is_said() {
        let mut machine = Machine::new(1.0, None);
        machine.run(60, |_| 5.0);
        assert_eq!(machine.given_up(), (true, 1));
        assert!(machine.governor.budget(99).is_exceeded);
        machine.run(60, |_| 0.5);
        assert!(!machine.governor.budget(99).is_exceeded);
        // Nor is the rate reduced below 4 samples a second.
        let mut machine = Machine::new(1.0, Some(19));
        machine.run(200, |_| 5.0);
        assert_eq!(machine.given_up(), (true, 4));
    }

    #[test]
    fn a_rate_that_is_asked_for_is_tried() {
        let mut machine = Machine::new(1.0, Some(99));
        machine.run(200, |_| 5.0);
        assert_eq!(machine.given_up(), (true, 16));
        let now = machine.now();
        machine.governor.set_rate(999, now);
        assert_eq!(machine.given_up(), (true, 1));
        machine.run(200, |_| 5.0);
        assert_eq!(machine.given_up(), (true, 16));
    }
}
