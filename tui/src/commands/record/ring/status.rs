//! The answers of a recorder at the control socket: documents that scripts may rely on
//! (docs/recorder.md).

use super::Ring;
use super::cohort::CohortRate;
use super::spool::{Spool, SpoolStatus};
use engine::snapshot::Snapshot;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The answer to `status`.
#[derive(Debug, Serialize)]
pub struct Status {
    version: u32,
    pid: u32,
    /// The target in words; empty while the recorder starts.
    scope: String,
    rate_hz: u32,
    /// When sampling began, in seconds since 1970, and for how long it has run.
    since_unix: u64,
    seconds: f64,
    samples: u64,
    lost: u64,
    /// The present CPU usage of the recorder in percent of one CPU, including its part in the
    /// kernel.
    cpu_percent: f64,
    memory_bytes: u64,
    ring: RingStatus,
    saves: Saves,
    /// None without a spool.
    spool: Option<SpoolStatus>,
    /// None if the rate does not depend on a cohort.
    cohort: Option<CohortStatus>,
}

#[derive(Debug, Serialize)]
struct CohortStatus {
    rate_hz: u32,
    share: f64,
    period_seconds: i64,
    /// Whether this host is in the cohort now.
    is_in: bool,
}

impl From<&CohortRate> for CohortStatus {
    fn from(rate: &CohortRate) -> Self {
        let config = rate.config();
        Self {
            rate_hz: config.rate_hz,
            share: config.cohort.share,
            period_seconds: config.cohort.period_ms / 1000,
            is_in: rate.is_in(),
        }
    }
}

#[derive(Debug, Serialize)]
struct RingStatus {
    file: String,
    /// How much time the file covers.
    seconds: f64,
    bytes: u64,
    bytes_max: u64,
    /// Why the file is not being written at present.
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Saves {
    /// Number of files that this run has saved.
    written: u64,
    /// Maximum number of saved files.
    kept_max: usize,
    last: Option<String>,
}

/// The answer to `save`.
#[derive(Debug, Serialize)]
pub struct Saved {
    saved: Option<String>,
    /// A sentence on what was saved, or why nothing was.
    words: String,
}

impl Saved {
    /// Makes the answer from the result of saving, and the last saved file.
    pub fn new(saved: Result<String, String>, last: Option<PathBuf>) -> Self {
        match saved {
            Ok(words) => Self {
                saved: last.map(|path| shown(&path)),
                words,
            },
            Err(words) => Self { saved: None, words },
        }
    }
}

impl Ring {
    /// Returns the state of the recorder. `last` is the last report, if there is one.
    pub fn status(&self, last: Option<&Snapshot>) -> Status {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let none = Snapshot::default();
        let last = last.unwrap_or(&none);
        let (run, health) = (&last.run, &last.health);
        Status {
            version: 1,
            pid: std::process::id(),
            scope: run.scope.to_string(),
            rate_hz: last.source.rate_hz,
            since_unix: now
                .unwrap_or_default()
                .saturating_sub(run.elapsed)
                .as_secs(),
            seconds: run.elapsed.as_secs_f64(),
            samples: health.taken_run,
            lost: health.lost_run,
            cpu_percent: health.own_cpu_percent,
            memory_bytes: health.own_rss_bytes,
            ring: RingStatus {
                file: self.file.name().into(),
                seconds: self.file.seconds(last.report.window.end_ns),
                bytes: self.file.bytes(),
                bytes_max: self.config.bytes_max,
                error: self.file.error().map(String::from),
            },
            saves: Saves {
                written: self.saves.written(),
                kept_max: self.saves.files_max(),
                last: self.saves.last().map(|path| shown(&path)),
            },
            spool: self.spool.as_ref().map(Spool::status),
            cohort: self.cohort.as_ref().map(CohortStatus::from),
        }
    }
}

fn shown(path: &Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}
