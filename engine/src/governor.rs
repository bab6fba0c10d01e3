//! Keeps what proftop takes from the machine below a budget. Where it takes more, it gives up
//! detail step by step: first lines of source text and inlined functions, then samples. Where
//! it takes much less for a while, it takes the last step back.
//!
//! ```text
//! all ── no lines ── 1/2 of the rate ── 1/4 ── 1/8 ── 1/16
//!     ───► over the budget, for 10 s or since the last step (5 s at least)
//!     ◄─── below a third of it for a while, which doubles each time that it was too early
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What proftop costs is judged by this much of the time that is just over.
const JUDGED: Duration = Duration::from_secs(10);

/// How often the CPU time is read.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// After a step its effect has to be seen first.
const SETTLES: Duration = Duration::from_secs(5);

/// At first the names of everything that runs are read, which is done once.
const BEGINS: Duration = Duration::from_secs(10);

/// A step is taken back when proftop costs less than this share of the budget: with the double
/// rate it costs twice as much at most.
const MUCH_LESS: f64 = 1.0 / 3.0;

/// For how long it has to cost so little, at first and at most.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// By how much each step after the first divides the rate.
const DIVISORS: [u32; 4] = [2, 4, 8, 16];

/// No step goes below so many samples a second, unless fewer were asked for.
const RATE_MIN: u32 = 4;

/// What is given up; the default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frugality {
    /// No more debug information is read for lines of source text and inlined functions.
    pub omits_lines: bool,
    /// The rate that is asked for is divided by this.
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
    /// Whether lines were read so far and are not now, or the other way round.
    pub is_about_lines: bool,
}

/// How the budget stands, for those who show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// What may be taken, in percent of one CPU.
    pub percent: f64,
    /// What is given up to keep to it.
    pub given_up: Frugality,
    /// The rate that was asked for.
    pub rate_hz: u32,
    /// It was not kept in the time that is just over, and there is nothing more to give up.
    pub is_exceeded: bool,
}

impl Budget {
    /// A sentence on what is given up, or on a budget that cannot be kept; `None` if there is
    /// nothing to say.
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

/// What is known of the past, and what was decided.
#[derive(Debug)]
pub struct Governor {
    percent: f64,
    /// Whether debug information is read at all.
    has_lines: bool,
    /// What can be given up, one step after the other; nothing at first.
    steps: Vec<Frugality>,
    step: usize,
    /// When the step was taken. Costs are judged from then on.
    since: Instant,
    /// CPU time that was used, as it was read at these times.
    looks: VecDeque<(Instant, Duration)>,
    /// How long it has to cost little before a step is taken back.
    patience: Duration,
    /// The last step was one back.
    was_relieved: bool,
    is_exceeded: bool,
}

impl Governor {
    /// Keeps to so many percent of one CPU from now on. `rate_hz` is asked for; `None` if it
    /// cannot be changed.
    pub fn new(percent: f64, rate_hz: Option<u32>, has_lines: bool, now: Instant) -> Self {
        Self {
            percent,
            has_lines,
            steps: steps(rate_hz, has_lines),
            step: 0,
            // What the beginning costs is not judged.
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

    /// How it stands, where this rate was asked for.
    pub fn budget(&self, rate_hz: u32) -> Budget {
        Budget {
            percent: self.percent,
            given_up: self.given_up(),
            rate_hz,
            is_exceeded: self.is_exceeded,
        }
    }

    /// The user has asked for another rate, and has it until it is seen what that costs.
    pub fn set_rate(&mut self, rate_hz: u32, now: Instant) {
        self.steps = steps(Some(rate_hz), self.has_lines);
        self.step = self.step.min(usize::from(self.has_lines));
        self.take_step(now);
    }

    /// Looks at the CPU time that was used up to now, if that was not done just before. Returns
    /// what is to be given up from now on, if that has changed.
    pub fn judge(&mut self, spent: impl FnOnce() -> Duration, now: Instant) -> Option<Change> {
        let is_early = |(last, _): &(Instant, Duration)| now - *last < LOOKS_EVERY;
        if now < self.since || self.looks.back().is_some_and(is_early) {
            return None;
        }
        let spent = spent();
        self.looks.push_back((now, spent));
        // One that is older stays: from it on the time is counted.
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

    /// What was used before says nothing of the step that is taken now.
    fn take_step(&mut self, now: Instant) {
        self.looks.clear();
        self.since = now;
    }
}

/// What can be given up of this rate, one after the other. Nothing is the first.
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

    /// A machine on which proftop costs so much each second, and its clock.
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
        // It is always too dear with lines: each try is further from the one before.
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
        // Nor is it sampled less than 4 times a second.
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
