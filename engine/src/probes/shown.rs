//! The probes of a run as contained in snapshots: data only.

use super::order::{ProbedFunction, Whose};
use super::suggest::Suggested;
use std::sync::Arc;
use std::time::Duration;

/// All probes of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probes {
    /// Probes in the order in which they were placed.
    pub list: Vec<Probe>,
    /// The number of the probe that the last order was about; 0 if the order was refused.
    pub touched: u64,
    /// Number of orders about probes so far.
    pub turn: u64,
    /// A message for the user: why a probe was refused, or removed.
    pub word: Option<Word>,
    /// Suggested names for what was typed, if requested.
    pub suggested: Option<Arc<Suggested>>,
}

/// A sentence that is shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Number of the sentence, rising.
    pub number: u64,
    /// The sentence, for the user.
    pub sentence: Arc<str>,
}

/// One probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Number of the probe, unique in this run.
    pub number: u64,
    /// Displayed name of the function.
    pub name: Arc<str>,
    /// Name of its file.
    pub module: Arc<str>,
    /// The requested function.
    pub place: ProbedFunction,
    /// The processes whose calls count.
    pub whose: Whose,
    /// The stage that it has reached.
    pub stage: Stage,
    /// Its counts; `None` until it was in place.
    pub seen: Option<Seen>,
}

/// The stages of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Its function is being looked up.
    Sought,
    /// There is no such function yet; it is looked up again and again.
    Missing,
    /// Its breakpoints are set.
    InPlace {
        /// Time until it is removed automatically.
        left: Duration,
    },
    /// It was removed: the reason, in words that follow "taken away:".
    Gone(Arc<str>),
    /// It is from a recording. With the reason for its removal, if it was removed.
    Recorded(Option<Arc<str>>),
}

/// The counts of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Where its breakpoints are.
    pub site: Site,
    /// How long it has been in place.
    pub time: Duration,
    /// Number of calls that began.
    pub calls: u64,
    /// Number of calls that began and ended.
    pub returns: u64,
    /// Number of hits by processes that are not targets.
    pub others: u64,
    /// Number of hits of a tracepoint that the kernel skipped.
    pub missed: u64,
    /// Calls per second, recently.
    pub calls_per_second: f64,
    /// Number of calls in each of the last seconds, the newest last; at most [`TREND_MAX`].
    pub trend: Vec<u32>,
    /// Its cost for the programs.
    pub cost: ProbeCost,
    /// Durations of calls; `None` until one has returned.
    pub latency: Option<Latency>,
    /// CPU time of the function in that time, counted by samples; `None` if it is too early.
    pub on_cpu: Option<OnCpu>,
    /// The values that were read, in the requested order.
    pub values: Vec<ProbeValue>,
    /// Number of values for which there was no room.
    pub values_lost: u64,
    /// Whole stacks above the function, of some calls.
    pub callers: Shares,
    /// The threads that made these calls.
    pub threads: Shares,
    /// Number of stacks that do not reach their thread's first function.
    pub stacks_cut: u64,
    /// Number of stacks that were due and could not be taken, or not be stored.
    pub stacks_lost: u64,
}

/// Maximum number of seconds in [`Seen::trend`].
pub const TREND_MAX: usize = 60;

/// Where the breakpoints are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Link address of the function's start.
    pub address: u64,
    /// Identifier of the language of its code.
    pub language: Arc<str>,
    /// Number of copies of the function.
    pub copies: usize,
    /// Number of breakpoints in all copies.
    pub breakpoints: usize,
    /// Whether some of them are single-stepped, which costs more.
    pub is_stepped: bool,
    /// Whether the ends of calls are seen.
    pub is_timed: bool,
    /// Whether a loop begins at the function's first instruction: each iteration counts as a call.
    pub repeats: bool,
    /// Whether it is a tracepoint of the kernel, which needs no breakpoint.
    pub is_point: bool,
    /// Names of the arguments of a tracepoint.
    pub arguments: Vec<Arc<str>>,
}

/// The cost of a probe for the programs that hit it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProbeCost {
    /// Cost of one hit in nanoseconds, measured on this machine.
    pub hit_ns: u64,
    /// The time that is displayed for a call that does nothing, in nanoseconds.
    pub floor_ns: u64,
    /// Recent cost as a share of one CPU.
    pub share: f64,
    /// The share at which it is removed.
    pub share_max: f64,
}

/// Durations of calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency {
    /// Duration that half of the calls did not exceed.
    pub p50_ns: u64,
    /// Duration that 90 % of the calls did not exceed.
    pub p90_ns: u64,
    /// Duration that 99 % of the calls did not exceed.
    pub p99_ns: u64,
    /// Duration of the longest call.
    pub max_ns: u64,
    /// Sum of the durations of all calls.
    pub sum_ns: u64,
    /// From, up to, number of calls: in steps of a quarter of a power of two, only those with
    /// calls.
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
    /// Share of the time of its calls that the function was on a CPU, and the margin of error at 95
    /// %. `None` if there is too little data.
    pub fn busy_share(&self) -> Option<(f64, f64)> {
        let (latency, on_cpu) = (self.latency.as_ref()?, self.on_cpu?);
        // The overhead of the probe itself, in every call, is not the function's time.
        let own_ns = self.cost.floor_ns.saturating_mul(self.returns);
        let time_ns = latency.sum_ns.saturating_sub(own_ns);
        if time_ns < BUSY_TIME_MIN_NS || self.time < BUSY_AFTER {
            return None;
        }
        // Without a sample neither the share nor its margin can be computed, as it is unknown what
        // a sample stands for.
        if on_cpu.samples == 0 {
            return None;
        }
        let share = on_cpu.cpu_ns as f64 / time_ns as f64;
        let samples = on_cpu.samples as f64;
        // The margin of a Poisson distribution.
        let off = share / samples * 1.96 * samples.sqrt();
        (off <= BUSY_OFF_MAX).then_some((share.min(1.0), off))
    }
}

/// Maximum margin: a share that is less certain is not shown.
const BUSY_OFF_MAX: f64 = 0.5;

/// Minimum time that is compared with samples: a shorter one is hardly ever hit.
const BUSY_TIME_MIN_NS: u64 = 20_000_000;
const BUSY_AFTER: Duration = Duration::from_secs(2);

/// The readings of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeValue {
    /// The expression as typed.
    pub expression: Arc<str>,
    /// Where the value is, in words.
    pub register: Arc<str>,
    /// The most frequent values, with their numbers.
    pub top: Vec<(Arc<str>, u64)>,
    /// Number of all other values.
    pub others: u64,
    /// Number of times that the value could not be read.
    pub unreadable: u64,
}

/// Groups of sampled calls, most frequent first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares {
    /// What the calls of a group have in common, and their number.
    pub rows: Vec<(Arc<[Arc<str>]>, u64)>,
    /// Number of calls in all groups.
    pub all: u64,
}

/// Merges the callers of a recursion: `f < f < f < main` becomes `f (recursive) < main`, as it
/// matters who began the recursion, and not how deep each call was.
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
        // Without a sample the margin is unknown.
        assert_eq!(seen(0).busy_share(), None);
    }
}
