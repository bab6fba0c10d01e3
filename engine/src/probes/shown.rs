//! The probes of a run as snapshots have them: data, and nothing that is attached.

use super::order::{ProbedFunction, Whose};
use super::suggest::Suggested;
use std::sync::Arc;
use std::time::Duration;

/// All probes of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probes {
    /// In the order in which they were placed.
    pub list: Vec<Probe>,
    /// The number of the probe that an order was about last; 0 if that was refused.
    pub touched: u64,
    /// Counts up with every order that was about a probe.
    pub turn: u64,
    /// What has to be said: why a probe was refused, or taken away.
    pub word: Option<Word>,
    /// Names for what was typed, if they were asked for.
    pub suggested: Option<Arc<Suggested>>,
}

/// A sentence that is said once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Counts up with every sentence.
    pub number: u64,
    /// The sentence, for the user.
    pub sentence: Arc<str>,
}

/// One probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Never another one's in this run.
    pub number: u64,
    /// The function, in words.
    pub name: Arc<str>,
    /// Its file.
    pub module: Arc<str>,
    /// The function that was asked for.
    pub place: ProbedFunction,
    /// The processes whose calls count.
    pub whose: Whose,
    /// How far it has come.
    pub stage: Stage,
    /// `None` until it was in place.
    pub seen: Option<Seen>,
}

/// How far a probe has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Its function is being looked for.
    Sought,
    /// There is no such function yet; it is looked for again and again.
    Missing,
    /// Its breakpoints are set.
    InPlace {
        /// Until it goes by itself.
        left: Duration,
    },
    /// Why it was taken away: words that follow "taken away:".
    Gone(Arc<str>),
    /// It is one of a recording. With why it was taken away, if it was.
    Recorded(Option<Arc<str>>),
}

/// What was seen of a probe's calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Where its breakpoints are.
    pub site: Site,
    /// How long it has been in place.
    pub time: Duration,
    /// Calls that began.
    pub calls: u64,
    /// Calls that began and ended.
    pub returns: u64,
    /// Hits of processes that are no targets.
    pub others: u64,
    /// Hits of a tracepoint that the kernel left out.
    pub missed: u64,
    /// Calls in a second, lately.
    pub calls_per_second: f64,
    /// Calls of each of the last seconds, the newest last; at most [`TREND_MAX`].
    pub trend: Vec<u32>,
    /// What it takes from the programs.
    pub cost: ProbeCost,
    /// How long calls took; `None` until one has returned.
    pub latency: Option<Latency>,
    /// CPU time of the function in that time, counted by samples; `None` where it is
    /// too early to tell.
    pub on_cpu: Option<OnCpu>,
    /// What was read of the calls, in the order that was asked for.
    pub values: Vec<ProbeValue>,
    /// Values for which there was no room.
    pub values_lost: u64,
    /// Whole stacks above the function, of some calls.
    pub callers: Shares,
    /// The threads that made these calls.
    pub threads: Shares,
    /// Stacks that do not reach their thread's first function.
    pub stacks_cut: u64,
    /// Stacks that were due and could not be taken, or not be kept.
    pub stacks_lost: u64,
}

/// Seconds of [`Seen::trend`].
pub const TREND_MAX: usize = 60;

/// Where the breakpoints are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Where the function starts, as the linker wrote it.
    pub address: u64,
    /// The language of its code, in words.
    pub language: Arc<str>,
    /// Copies of the function, and breakpoints in all.
    pub copies: usize,
    /// How many breakpoints there are in all copies.
    pub breakpoints: usize,
    /// Some of them are run by a single step, which costs more.
    pub is_stepped: bool,
    /// The ends of calls are seen.
    pub is_timed: bool,
    /// A loop begins at its first instruction: each round counts as a call.
    pub repeats: bool,
    /// It is a tracepoint of the kernel, and no function: there is no breakpoint.
    pub is_point: bool,
    /// What the arguments of a tracepoint are called.
    pub arguments: Vec<Arc<str>>,
}

/// What a probe takes from the programs that hit it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProbeCost {
    /// Of one hit, as it was measured on this machine.
    pub hit_ns: u64,
    /// What is shown as the time of a call that does nothing.
    pub floor_ns: u64,
    /// Of one CPU, lately, as a share.
    pub share: f64,
    /// At which share it is taken away.
    pub share_max: f64,
}

/// How long calls took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency {
    /// Half of the calls were not longer.
    pub p50_ns: u64,
    /// Nine of ten were not longer.
    pub p90_ns: u64,
    /// 99 of 100 were not longer.
    pub p99_ns: u64,
    /// The longest one.
    pub max_ns: u64,
    /// All of them together.
    pub sum_ns: u64,
    /// From, up to, how many calls: in steps of a quarter of a power of two, only those
    /// with calls.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// CPU time of a function, counted by samples of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnCpu {
    /// Samples that had the function on their stack.
    pub samples: u64,
    /// The CPU time that they stand for.
    pub cpu_ns: u64,
}

impl Seen {
    /// How much of the time of its calls the function was on a CPU, and how far that may
    /// be off: 95 of 100 times it is within. `None` where there is too little to tell.
    pub fn busy_share(&self) -> Option<(f64, f64)> {
        let (latency, on_cpu) = (self.latency.as_ref()?, self.on_cpu?);
        // What the probe itself adds to every call is not the function's.
        let own_ns = self.cost.floor_ns.saturating_mul(self.returns);
        let time_ns = latency.sum_ns.saturating_sub(own_ns);
        if time_ns < BUSY_TIME_MIN_NS || self.time < BUSY_AFTER {
            return None;
        }
        // None of the samples hit it: that tells neither a share nor how far it is off, as it
        // is not known what a sample stands for.
        if on_cpu.samples == 0 {
            return None;
        }
        let share = on_cpu.cpu_ns as f64 / time_ns as f64;
        let samples = on_cpu.samples as f64;
        // Poisson.
        let off = share / samples * 1.96 * samples.sqrt();
        (off <= BUSY_OFF_MAX).then_some((share.min(1.0), off))
    }
}

/// A share that may be off by more than that says nothing.
const BUSY_OFF_MAX: f64 = 0.5;

/// Less time than that is not compared with samples: hardly one hits it.
const BUSY_TIME_MIN_NS: u64 = 20_000_000;
const BUSY_AFTER: Duration = Duration::from_secs(2);

/// Values that were read of the calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeValue {
    /// As it was typed.
    pub expression: Arc<str>,
    /// Where it was, in words.
    pub register: Arc<str>,
    /// The most frequent ones.
    pub top: Vec<(Arc<str>, u64)>,
    /// How often all others came.
    pub others: u64,
    /// How often the value could not be read.
    pub unreadable: u64,
}

/// What sampled calls have in common, most first, and of how many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares {
    /// What they have in common, and how many calls have it.
    pub rows: Vec<(Arc<[Arc<str>]>, u64)>,
    /// How many calls were looked at.
    pub all: u64,
}

/// The callers of a recursion as one: of `f < f < f < main` is told `f (recursive) < main`, as
/// a user wants to know who began it, and not how deep each call was.
pub fn folded(names: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let runs = names.chunk_by(|a, b| a == b);
    let one = |run: &[Arc<str>]| match run {
        [name] => Arc::clone(name),
        run => format!("{} (recursive)", run[0]).into(),
    };
    runs.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_a_recursion_are_one() {
        let names = |text: &str| text.split(' ').map(Arc::from).collect::<Vec<Arc<str>>>();
        assert_eq!(folded(names("f g main")), names("f g main"));
        let deep = folded(names("f f f main"));
        assert_eq!(deep, folded(names("f f main")));
        assert_eq!(deep.join(" < "), "f (recursive) < main");
    }

    fn seen(samples: u64) -> Seen {
        Seen {
            site: Site::default(),
            time: Duration::from_secs(10),
            calls: 1000,
            returns: 1000,
            others: 0,
            calls_per_second: 100.0,
            trend: Vec::new(),
            cost: ProbeCost::default(),
            latency: Some(Latency {
                sum_ns: 4_000_000_000,
                ..Latency::default()
            }),
            on_cpu: Some(OnCpu {
                samples,
                cpu_ns: samples * 10_000_000,
            }),
            values: Vec::new(),
            missed: 0,
            values_lost: 0,
            callers: Shares::default(),
            threads: Shares::default(),
            stacks_cut: 0,
            stacks_lost: 0,
        }
    }

    #[test]
    fn a_share_is_told_where_samples_tell_it() {
        let (share, off) = seen(100).busy_share().unwrap();
        assert!(
            (share - 0.25).abs() < 1e-9 && (off - 0.049).abs() < 1e-9,
            "{share} {off}"
        );
        // Of none it is not known how far it is off.
        assert_eq!(seen(0).busy_share(), None);
    }
}
