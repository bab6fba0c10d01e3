//! Where and how a profile was taken: what its numbers mean.

use crate::time::{Pause, STAMP_NS};

/// What the samples of a profile count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// As in `cpu`, `offcpu`, `alloc_space`.
    pub name: String,
    /// Of one unit of weight: `samples`, `nanoseconds`, `bytes`.
    pub unit: String,
}

impl Metric {
    /// Time that threads were on no CPU, in nanoseconds, as this library's users take it.
    pub fn off_cpu() -> Self {
        Self {
            name: "off-cpu".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// Time on CPUs and on none, in nanoseconds.
    pub fn wall() -> Self {
        Self {
            name: "wall".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// How often something happened that is called so: each sample stands for as often as it
    /// happened since the one before.
    pub fn happening(name: &str) -> Self {
        Self {
            name: name.into(),
            unit: EVENTS.into(),
        }
    }

    /// Whether samples stand for how often something happened, each for as often as it did since
    /// the one before.
    pub fn counts_events(&self) -> bool {
        self.unit == EVENTS
    }

    /// Time that threads waited until others ended that, by who did, in nanoseconds.
    pub fn kept_waiting() -> Self {
        Self {
            name: "kept-waiting".into(),
            unit: NANOSECONDS.into(),
        }
    }

    /// Whether each unit of weight is a sample, unless samples were taken at several rates.
    pub fn counts_samples(&self) -> bool {
        self.unit == SAMPLES || (self.name == SAMPLES && self.unit == COUNT)
    }

    /// Whether waiting is in it.
    pub fn is_waiting(&self) -> bool {
        *self == Self::off_cpu() || *self == Self::wall() || *self == Self::kept_waiting()
    }

    /// How much of it makes a second of a thread; 0 if a rate tells that, or nothing does:
    /// what other tools count in nanoseconds may be anything.
    pub fn per_second(&self) -> u32 {
        if self.is_waiting() { 1_000_000_000 } else { 0 }
    }
}

/// The unit of samples, and what pprof calls a metric that counts them.
const SAMPLES: &str = "samples";

/// The unit of whatever pprof's metrics count.
const COUNT: &str = "count";

/// The unit of what happens.
const EVENTS: &str = "events";

/// The unit of times.
const NANOSECONDS: &str = "nanoseconds";

impl Default for Metric {
    /// Ticks of a clock on the CPUs.
    fn default() -> Self {
        Self {
            name: "cpu".into(),
            unit: SAMPLES.into(),
        }
    }
}

/// About a whole profile. What is not known is empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    /// What one unit of a sample's weight is.
    pub metric: Metric,
    /// The machine that was sampled.
    pub host: Host,
    /// How often a busy CPU was sampled.
    pub rates: Rates,
    /// What was sampled, in words: `system`, `postgres[4121]`.
    pub scope: String,
    /// The wall clock where the clock of the samples is 0, in ms since 1970.
    pub epoch_unix_ms: i64,
    /// When nothing was sampled, between recordings that were put together: in the order of
    /// time, and apart from each other.
    pub pauses: Vec<Pause>,
    /// Samples lost because a buffer was full.
    pub lost: u64,
    /// Sentences: what the source could not give, and why.
    pub notes: Vec<String>,
}

/// A machine. What is not known of it is empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// As in `db-01`.
    pub name: String,
    /// The kernel's release, as in `6.18.44`.
    pub kernel: String,
    /// As in `x86-64`.
    pub arch: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// The numbers of the only CPUs that are sampled, rising; empty: all of them.
    pub sampled_cpus: Vec<u16>,
}

impl Host {
    /// Number of CPUs that are sampled: what samples are compared with.
    pub fn cpus_sampled(&self) -> u32 {
        match self.sampled_cpus.len() {
            0 => self.cpus,
            some => some as u32,
        }
    }

    /// Whether samples of that CPU are taken.
    pub fn is_sampled(&self, cpu: u16) -> bool {
        self.sampled_cpus.is_empty() || self.sampled_cpus.contains(&cpu)
    }
}

/// How much of the time of the CPUs that were sampled something ran on them, be it of what was
/// sampled or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Busy {
    /// The time in which something ran, of all CPUs together.
    pub busy_ms: u64,
    /// The time that there was, of all CPUs together; 0 if nothing is known.
    pub of_ms: u64,
}

impl Busy {
    /// In percent; `None` if nothing is known.
    pub fn percent(&self) -> Option<f64> {
        // The kernel counts in ticks, and a file may say anything.
        let busy_ms = self.busy_ms.min(self.of_ms);
        (self.of_ms > 0).then(|| busy_ms as f64 * 100.0 / self.of_ms as f64)
    }

    /// Whether so little was left that programs that wanted more had to wait for each other.
    pub fn is_crowded(&self) -> bool {
        self.percent()
            .is_some_and(|percent| percent >= CROWDED_PERCENT)
    }

    /// That of two recordings together.
    pub fn and(self, other: Self) -> Self {
        Self {
            busy_ms: self.busy_ms.saturating_add(other.busy_ms),
            of_ms: self.of_ms.saturating_add(other.of_ms),
        }
    }
}

/// From so much on, in the mean of a recording, CPUs were all busy for many moments of it.
const CROWDED_PERCENT: f64 = 90.0;

/// The rates of a profile, in samples per second of a busy CPU: the first one, and
/// each change since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rates {
    /// The rate in the beginning; 0 if it is not known.
    pub first_hz: u32,
    /// What it was changed to, in the order of time.
    pub changes: Vec<RateChange>,
}

/// A change of the rate: from this moment on it is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    /// On the clock of the samples.
    pub from_ns: u64,
    /// Samples per second of a busy CPU.
    pub hz: u32,
}

/// More than somebody changes by hand while a history is kept.
const CHANGES_MAX: usize = 10_000;

impl Rates {
    /// One rate that never changes; 0 if it is not known.
    pub fn always(hz: u32) -> Self {
        Self {
            first_hz: hz,
            changes: Vec::new(),
        }
    }

    /// Notes that the rate is another from a moment on. That moment is later than
    /// those of all changes before.
    pub fn change(&mut self, from_ns: u64, hz: u32) {
        // Of one hundredth of a second only the last counts.
        let is_later = |change: &mut RateChange| change.from_ns / STAMP_NS >= from_ns / STAMP_NS;
        self.changes.pop_if(is_later);
        if self.at(from_ns) != hz {
            self.changes.push(RateChange { from_ns, hz });
        }
        if self.changes.len() > CHANGES_MAX {
            self.first_hz = self.changes.remove(0).hz;
        }
    }

    /// Forgets the rates of the time before a moment.
    pub fn forget_before(&mut self, ns: u64) {
        let gone = self.changes.partition_point(|c| c.from_ns <= ns);
        if let Some(last) = self.changes.drain(..gone).next_back() {
            self.first_hz = last.hz;
        }
    }

    /// The rate at a moment on the clock of the samples.
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
