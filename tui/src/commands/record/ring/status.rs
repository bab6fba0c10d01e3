//! What a recorder says of itself at the control socket: documents that scripts may rely on
//! (docs/recorder.md).

use super::Ring;
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
    /// What is sampled, in words; empty while the recorder starts.
    scope: String,
    rate_hz: u32,
    /// Seconds since 1970 when sampling began, and for how long that has been.
    since_unix: u64,
    seconds: f64,
    samples: u64,
    lost: u64,
    /// What the recorder takes of one CPU now, its part in the kernel included.
    cpu_percent: f64,
    memory_bytes: u64,
    ring: RingStatus,
    saves: Saves,
    /// `None` without a spool.
    spool: Option<SpoolStatus>,
}

#[derive(Debug, Serialize)]
struct RingStatus {
    file: String,
    /// The time that the file has.
    seconds: f64,
    bytes: u64,
    bytes_max: u64,
    /// Why it is not written at this time.
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Saves {
    /// By this run.
    written: u64,
    /// How many files are left at most.
    kept_max: usize,
    last: Option<String>,
}

/// The answer to `save`.
#[derive(Debug, Serialize)]
pub struct Saved {
    saved: Option<String>,
    /// What was saved, or why nothing was, in a sentence.
    words: String,
}

impl Saved {
    /// Of what came of saving, and the file that was saved last.
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
    /// What is recorded, and what became of it. `last` is the last report, if there was one.
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
        }
    }
}

fn shown(path: &Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}
