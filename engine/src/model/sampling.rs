//! How samples are taken: source, machine, rate.

use crate::host;
use crate::sampler::{Wish, Wishes};
use crate::settings::Settings;
use crate::snapshot::{Sampler, Source};
use probe::{EngineKind, SourceInfo};
use profile::{Host, Info, Rates};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The description of the source, and the channel for changing its rate.
pub struct Sampling {
    host: Arc<Host>,
    /// Unix time in ms at which the clock of the samples was 0.
    epoch_unix_ms: i64,
    /// The last description that the source gave.
    source: SourceInfo,
    /// `None` until the source has started.
    sampler: Option<Arc<Sampler>>,
    /// The rate and its changes.
    rates: Rates,
    /// Sends requests to the sampler.
    wanted: Wishes,
    /// Why the last requested rate is not used.
    rate_kept: Option<String>,
    /// Why requested waits are not counted.
    waits_refused: Option<Arc<str>>,
}

impl Sampling {
    /// Reads the description of the machine. The source is unknown until it starts.
    pub fn new(settings: &Settings, wanted: Wishes) -> Self {
        Self {
            host: Arc::new(host::read(&settings.cpus)),
            epoch_unix_ms: epoch_unix_ms(),
            source: SourceInfo::default(),
            sampler: None,
            rates: Rates::always(settings.rate_hz),
            wanted,
            rate_kept: None,
            waits_refused: None,
        }
    }

    /// The machine on which this program runs.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Handles that the source has started, or continues in another mode.
    pub fn set_source(&mut self, info: SourceInfo) {
        self.sampler = Some(Arc::new(Sampler {
            unwinding: info.unwinding,
            buffers: info.buffers.clone(),
            rate_is_fixed: info.rate_is_fixed,
            rate_max_hz: probe::features::max_sample_rate(),
        }));
        self.source = info;
    }

    /// Whether the source reports who ends waits.
    pub fn tells_wakers(&self) -> bool {
        self.source.engine != Some(EngineKind::Perf)
    }

    /// Whether the rate can be changed.
    pub fn is_changeable(&self) -> bool {
        self.source.rate_is_fixed.is_none()
    }

    /// Requests another rate from the sampler. The sampler replies with news when it has changed
    /// the rate, or why it has not.
    pub fn want_rate(&self, hz: u32) {
        // The send fails if the sampler has ended; then there are no more samples.
        let _ = self.wanted.send(Wish::Rate(hz));
    }

    /// Records that the rate is another one from `from_ns` on.
    pub fn change_rate(&mut self, info: SourceInfo, from_ns: u64) {
        self.rate_kept = None;
        self.rates.change(from_ns, info.rate_hz);
        self.set_source(info);
    }

    /// Records why the requested rate is not used.
    pub fn keep_rate(&mut self, sentence: String) {
        self.rate_kept = Some(sentence);
    }

    /// Requests from the sampler to count waits as well. It replies with news.
    pub fn want_waits(&self) {
        // The sampler may have ended; then there are no more samples.
        let _ = self.wanted.send(Wish::Waits);
    }

    /// Records why waits are not counted.
    pub fn refuse_waits(&mut self, sentence: &str) {
        self.waits_refused = Some(sentence.into());
    }

    /// Current number of samples per second of a busy CPU.
    pub fn rate_hz(&self) -> u32 {
        self.rates.last()
    }

    /// Drops changes of the rate that happened before all kept samples.
    pub fn forget_rates_before(&mut self, ns: u64) {
        self.rates.forget_before(ns);
    }

    /// Notes of the source, about unreadable files, and about a rate that is not used.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let files = probe::files::notes();
        let source = self.source.notes.iter().cloned();
        source.chain(files).chain(self.rate_kept.clone())
    }

    /// The description for snapshots.
    pub fn snapshot(&self) -> Source {
        Source {
            host: self.host.clone(),
            rate_hz: self.rates.last(),
            engine: self.source.engine,
            sampler: self.sampler.clone(),
            recording: None,
            machines: Arc::default(),
            budget: None,
            waits_refused: self.waits_refused.clone(),
        }
    }

    /// Updates the epoch if the machine's clock was set: readers compare a time of day with the
    /// current clock, and a machine may learn the date only after its start. The times of earlier
    /// samples move as well, as samples do not record when the clock was set.
    pub fn follow_clock(&mut self) {
        self.epoch_unix_ms = followed(self.epoch_unix_ms, epoch_unix_ms());
    }

    /// The description for files.
    pub fn info(&self, scope: &str, lost: u64, notes: Vec<String>) -> Info {
        Info {
            host: Host::clone(&self.host),
            rates: self.rates.clone(),
            scope: scope.into(),
            epoch_unix_ms: self.epoch_unix_ms,
            lost,
            notes,
            ..Info::default()
        }
    }
}

/// Minimum change of the clock that counts as setting it. Smaller ones are noise of reading two
/// clocks, or a leap second.
const STEP_MS: u64 = 2_000;

fn followed(kept_ms: i64, now_ms: i64) -> i64 {
    if kept_ms.abs_diff(now_ms) < STEP_MS {
        kept_ms
    } else {
        now_ms
    }
}

/// Computed from both clocks, read now: what was added to the real time since is unknown later.
fn epoch_unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock_ms = probe::now_ns() / 1_000_000;
    now.unwrap_or_default().as_millis() as i64 - clock_ms as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_followed_and_one_that_drifts_is_not() {
        let kept_ms = 1_795_269_792_000;
        for (now_ms, expected) in [
            (kept_ms + 1_500, kept_ms),
            (kept_ms - 1_500, kept_ms),
            (kept_ms + 3_600_000, kept_ms + 3_600_000),
            (kept_ms - 86_400_000, kept_ms - 86_400_000),
            // A machine whose clock begins in 1970.
            (0, 0),
        ] {
            assert_eq!(followed(kept_ms, now_ms), expected, "{now_ms}");
        }
    }
}
