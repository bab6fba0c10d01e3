//! How samples are taken: by whom, on which machine, how often.

use crate::host;
use crate::sampler::Wish;
use crate::settings::Settings;
use crate::snapshot::{Sampler, Source};
use probe::{EngineKind, SourceInfo};
use profile::{Host, Info, Rates};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is known of the source, and the way to tell it another rate.
pub struct Sampling {
    host: Arc<Host>,
    /// When clocks of samples were 0, in ms since 1970.
    epoch_unix_ms: i64,
    /// How samples are taken, as the source said last.
    source: SourceInfo,
    /// `None` until the source has started.
    sampler: Option<Arc<Sampler>>,
    /// Samples per second, and when that was changed.
    rates: Rates,
    /// Tells the sampler which rate is wanted.
    wanted: Sender<Wish>,
    /// Why the rate that was wanted last is not taken.
    rate_kept: Option<String>,
    /// Why waits that were wanted are not counted.
    waits_refused: Option<Arc<str>>,
}

impl Sampling {
    pub fn new(settings: &Settings, wanted: Sender<Wish>) -> Self {
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

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The source has started, or goes on in another way.
    pub fn set_source(&mut self, info: SourceInfo) {
        self.sampler = Some(Arc::new(Sampler {
            unwinding: info.unwinding,
            buffers: info.buffers.clone(),
            rate_is_fixed: info.rate_is_fixed,
            rate_max_hz: probe::features::max_sample_rate(),
        }));
        self.source = info;
    }

    /// Whether something tells who ends waits.
    pub fn tells_wakers(&self) -> bool {
        self.source.engine != Some(EngineKind::Perf)
    }

    /// Whether the rate can be another.
    pub fn is_changeable(&self) -> bool {
        self.source.rate_is_fixed.is_none()
    }

    /// Asks the sampler for another rate. It answers with news, when it has changed it
    /// or why it has not.
    pub fn want_rate(&self, hz: u32) {
        // The sampler may have ended; then there are no more samples.
        let _ = self.wanted.send(Wish::Rate(hz));
    }

    /// The rate is another from `from_ns` on.
    pub fn change_rate(&mut self, info: SourceInfo, from_ns: u64) {
        self.rate_kept = None;
        self.rates.change(from_ns, info.rate_hz);
        self.set_source(info);
    }

    /// The rate that was wanted is not taken; the sentence says why.
    pub fn keep_rate(&mut self, sentence: String) {
        self.rate_kept = Some(sentence);
    }

    /// Asks the sampler to count waits as well. It answers with news.
    pub fn want_waits(&self) {
        // The sampler may have ended; then there are no more samples.
        let _ = self.wanted.send(Wish::Waits);
    }

    /// Waits are not counted; the sentence says why.
    pub fn refuse_waits(&mut self, sentence: &str) {
        self.waits_refused = Some(sentence.into());
    }

    /// Samples per second of a busy CPU by now.
    pub fn rate_hz(&self) -> u32 {
        self.rates.last()
    }

    /// Forgets changes of the rate that happened before all kept samples.
    pub fn forget_rates_before(&mut self, ns: u64) {
        self.rates.forget_before(ns);
    }

    /// Sentences of the source, on files that cannot be read, and on a rate that is not
    /// taken.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let files = probe::files::notes();
        let source = self.source.notes.iter().cloned();
        source.chain(files).chain(self.rate_kept.clone())
    }

    /// What snapshots tell.
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

    /// Takes over the clock of the machine if that was set: readers compare a time of day with the
    /// clock as it is now, and a machine may learn the date after it has started. The times of
    /// earlier samples move with it, as samples do not say when the clock was set.
    pub fn follow_clock(&mut self) {
        self.epoch_unix_ms = followed(self.epoch_unix_ms, epoch_unix_ms());
    }

    /// What files tell.
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

/// By how much the clock has to be set to be followed. What is less is the noise of reading two
/// clocks, or a second that was inserted.
const STEP_MS: u64 = 2_000;

fn followed(kept_ms: i64, now_ms: i64) -> i64 {
    if kept_ms.abs_diff(now_ms) < STEP_MS {
        kept_ms
    } else {
        now_ms
    }
}

/// By both clocks, read now: what was added to the real time since is not known later.
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
            // A machine that begins in 1970.
            (0, 0),
        ] {
            assert_eq!(followed(kept_ms, now_ms), expected, "{now_ms}");
        }
    }
}
