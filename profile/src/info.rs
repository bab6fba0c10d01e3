//! Where and how a profile was taken: what its numbers mean.

use crate::RateChange;

/// What the samples of a profile count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// As in `cpu`, `offcpu`, `alloc_space`.
    pub name: String,
    /// Of one unit of weight: `samples`, `nanoseconds`, `bytes`.
    pub unit: String,
}

impl Default for Metric {
    /// Ticks of a clock on the CPUs.
    fn default() -> Self {
        Self {
            name: "cpu".into(),
            unit: "samples".into(),
        }
    }
}

/// About a whole profile. What is not known is empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    pub metric: Metric,
    pub host: String,
    pub kernel: String,
    pub arch: String,
    /// CPUs of the machine.
    pub cpus: u32,
    /// The numbers of the only ones that were sampled, rising; empty: all of them.
    pub sampled_cpus: Vec<u16>,
    /// Samples per second of a busy CPU, in the beginning.
    pub rate_hz: u32,
    /// What it was later, in the order of time: [`Info::change_rate`].
    pub rate_changes: Vec<RateChange>,
    /// What was sampled, in words: `system`, `postgres[4121]`.
    pub scope: String,
    /// The wall clock where the clock of the samples is 0, in ms since 1970.
    pub epoch_unix_ms: i64,
    /// Samples lost because a buffer was full.
    pub lost: u64,
    /// Sentences: what the source could not give, and why.
    pub notes: Vec<String>,
}
