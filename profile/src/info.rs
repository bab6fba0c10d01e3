//! Where and how a profile was taken, and what its numbers mean.

use crate::time::{Pause, STAMP_NS};

/// What the samples of a profile count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Name of the metric, such as `cpu`, `offcpu`, `alloc_space`.
    pub name: String,
    /// Unit of a sample's weight: `samples`, `nanoseconds`, `bytes`.
    pub unit: String,
}

impl Metric {
    /// Time that threads were on no CPU, in nanoseconds, as the users of this library record it.
    pub fn off_cpu() -> Self {
        Self {
            name: "off-cpu".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// Time on CPUs and off CPUs, in nanoseconds.
    pub fn wall() -> Self {
        Self {
            name: "wall".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// Number of occurrences of the event `name`: each sample stands for all occurrences since the
    /// sample before.
    pub fn happening(name: &str) -> Self {
        Self {
            name: name.into(),
            unit: EVENTS.into(),
        }
    }

    /// Whether samples stand for numbers of events, each for all occurrences since the sample
    /// before.
    pub fn counts_events(&self) -> bool {
        self.unit == EVENTS
    }

    /// Time that a thread made other threads wait, in nanoseconds, charged to the thread that ended
    /// the wait.
    pub fn kept_waiting() -> Self {
        Self {
            name: "kept-waiting".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// Whether the unit of weight is one sample (unless samples were taken at several rates).
    pub fn counts_samples(&self) -> bool {
        self.unit == SAMPLES || (self.name == SAMPLES && self.unit == COUNT)
    }

    /// Whether the metric includes waiting time.
    pub fn is_waiting(&self) -> bool {
        *self == Self::off_cpu() || *self == Self::wall() || *self == Self::kept_waiting()
    }

    /// Number of units in one second of a thread: nanoseconds, for waiting time. 0 for samples, of
    /// which the rate says it, and for other metrics: what other tools count in nanoseconds may be
    /// anything.
    pub fn per_second(&self) -> u32 {
        if self.is_waiting() { 1_000_000_000 } else { 0 }
    }
}

/// The unit of samples, and pprof's name for a metric that counts them.
const SAMPLES: &str = "samples";

/// The unit of pprof's metrics that are counts.
const COUNT: &str = "count";

/// The unit of events.
const EVENTS: &str = "events";

/// The unit of times.
const NANOSECONDS: &str = "nanoseconds";

impl Default for Metric {
    /// Clock ticks on the CPUs.
    fn default() -> Self {
        Self {
            name: "cpu".into(),
            unit: SAMPLES.into(),
        }
    }
}

/// Properties of a whole profile. Unknown ones are empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    /// What one unit of a sample's weight is.
    pub metric: Metric,
    /// The machine that was sampled.
    pub host: Host,
    /// Sampling rates of a busy CPU.
    pub rates: Rates,
    /// What was sampled, in words: `system`, `postgres[4121]`.
    pub scope: String,
    /// Wall clock time at which the clock of the samples is 0, in ms since 1970.
    pub epoch_unix_ms: i64,
    /// Periods in which nothing was sampled, between merged recordings: in the order of time, and
    /// not overlapping.
    pub pauses: Vec<Pause>,
    /// Number of samples lost because a buffer was full.
    pub lost: u64,
    /// Sentences about what the source could not provide, and why.
    pub notes: Vec<String>,
}

/// A machine. Unknown properties are empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Host name, such as `db-01`.
    pub name: String,
    /// The kernel's release, as in `6.18.44`.
    pub kernel: String,
    /// Architecture, such as `x86-64`.
    pub arch: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Numbers of the sampled CPUs, rising; empty if all CPUs are sampled.
    pub sampled_cpus: Vec<u16>,
}

impl Host {
    /// Number of sampled CPUs, to which sample counts are related.
    pub fn cpus_sampled(&self) -> u32 {
        match self.sampled_cpus.len() {
            0 => self.cpus,
            some => some as u32,
        }
    }

    /// Whether samples of this CPU are taken.
    pub fn is_sampled(&self, cpu: u16) -> bool {
        self.sampled_cpus.is_empty() || self.sampled_cpus.contains(&cpu)
    }
}

/// How much of the time the sampled CPUs were running anything, whether it was sampled or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Busy {
    /// Busy time of all CPUs together, in ms.
    pub busy_ms: u64,
    /// Available time of all CPUs together, in ms; 0 if unknown.
    pub of_ms: u64,
}

impl Busy {
    /// Busy time in percent; `None` if unknown.
    pub fn percent(&self) -> Option<f64> {
        // The kernel counts in ticks, and a file may contain any number.
        let busy_ms = self.busy_ms.min(self.of_ms);
        (self.of_ms > 0).then(|| busy_ms as f64 * 100.0 / self.of_ms as f64)
    }

    /// Whether CPUs were so busy that programs had to wait for each other.
    pub fn is_crowded(&self) -> bool {
        self.percent()
            .is_some_and(|percent| percent >= CROWDED_PERCENT)
    }

    /// Returns the sums of two recordings.
    pub fn and(self, other: Self) -> Self {
        Self {
            busy_ms: self.busy_ms.saturating_add(other.busy_ms),
            of_ms: self.of_ms.saturating_add(other.of_ms),
        }
    }
}

/// Average busy time of a recording, in percent, from which on all CPUs were busy for many moments.
const CROWDED_PERCENT: f64 = 90.0;

/// The sampling rates of a profile, in samples per second of a busy CPU: the first one and its
/// changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rates {
    /// The rate at the beginning; 0 if unknown.
    pub first_hz: u32,
    /// The changes of the rate, in the order of time.
    pub changes: Vec<RateChange>,
}

/// A change of the rate at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    /// When the rate changed, on the clock of the samples.
    pub from_ns: u64,
    /// Samples per second of a busy CPU.
    pub hz: u32,
}

/// Maximum number of changes that are kept, more than anyone makes by hand within a history.
const CHANGES_MAX: usize = 10_000;

impl Rates {
    /// One rate that never changes; 0 if unknown.
    pub fn always(hz: u32) -> Self {
        Self {
            first_hz: hz,
            changes: Vec::new(),
        }
    }

    /// Records that the rate changes at `from_ns`, which must be later than all changes before.
    pub fn change(&mut self, from_ns: u64, hz: u32) {
        // If the rate changes several times within a hundredth of a second, the last change counts.
        let is_later = |change: &mut RateChange| change.from_ns / STAMP_NS >= from_ns / STAMP_NS;
        self.changes.pop_if(is_later);
        if self.at(from_ns) != hz {
            self.changes.push(RateChange { from_ns, hz });
        }
        if self.changes.len() > CHANGES_MAX {
            self.first_hz = self.changes.remove(0).hz;
        }
    }

    /// Forgets the rates of the time before `ns`.
    pub fn forget_before(&mut self, ns: u64) {
        let gone = self.changes.partition_point(|c| c.from_ns <= ns);
        if let Some(last) = self.changes.drain(..gone).next_back() {
            self.first_hz = last.hz;
        }
    }

    /// Returns the rate at a moment on the clock of the samples.
    pub fn at(&self, ns: u64) -> u32 {
        let before = self.changes.partition_point(|c| c.from_ns <= ns);
        match before.checked_sub(1) {
            Some(last) => self.changes[last].hz,
            None => self.first_hz,
        }
    }

    /// The rate after the last change.
    pub fn last(&self) -> u32 {
        self.at(u64::MAX)
    }
}
