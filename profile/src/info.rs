//! Where and how a profile was taken: what its numbers mean.

use crate::time::STAMP_NS;

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

/// From then on it was another rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    pub from_ns: u64,
    pub hz: u32,
}

/// More than somebody changes by hand while a history is kept.
const CHANGES_MAX: usize = 10_000;

impl Info {
    /// Tells that from a moment on, later than all that was told before, the rate
    /// is another.
    pub fn change_rate(&mut self, from_ns: u64, hz: u32) {
        let changes = &mut self.rate_changes;
        // Of one hundredth of a second only the last counts.
        let is_later = |change: &mut RateChange| change.from_ns / STAMP_NS >= from_ns / STAMP_NS;
        changes.pop_if(is_later);
        if self.rate_at(from_ns) != hz {
            self.rate_changes.push(RateChange { from_ns, hz });
        }
        if self.rate_changes.len() > CHANGES_MAX {
            self.rate_hz = self.rate_changes.remove(0).hz;
        }
    }

    /// Forgets what was before a moment.
    pub fn forget_rates_before(&mut self, ns: u64) {
        let gone = self.rate_changes.partition_point(|c| c.from_ns <= ns);
        if let Some(last) = self.rate_changes.drain(..gone).next_back() {
            self.rate_hz = last.hz;
        }
    }

    /// The rate at a moment.
    pub fn rate_at(&self, ns: u64) -> u32 {
        let before = self.rate_changes.partition_point(|c| c.from_ns <= ns);
        match before.checked_sub(1) {
            Some(last) => self.rate_changes[last].hz,
            None => self.rate_hz,
        }
    }
}
