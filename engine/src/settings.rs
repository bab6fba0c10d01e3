//! What an engine is started with, and what it can be told while it runs.

use crate::snapshot::Span;
use profile::Limits;
use std::sync::Arc;
use std::time::Duration;

/// What the engine is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    pub limits: Limits,
    pub schedule: Schedule,
    /// What is sampled, in words.
    pub scope: Arc<str>,
    /// The only CPUs that are; empty: all.
    pub cpus: Vec<u32>,
    pub rate_hz: u32,
}

/// When snapshots are made, and of which time.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Every `refresh`, of the last `window`.
    Live { window: Span, refresh: Duration },
    /// One for each `delay`, of just that time, up to `count` of them.
    Reports {
        delay: Duration,
        count: Option<u64>,
        names: AwaitNames,
    },
}

/// Which reports wait a moment for the names of their frames. The last one waits longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitNames {
    Each,
    /// A recording's names may come later than their samples.
    Last,
}

/// What the engine can be told while it runs.
#[derive(Debug)]
pub enum Command {
    SetWindow(Span),
    /// Take this number of samples per second of a busy CPU from now on.
    SetRate(u32),
    /// The started command has ended: in these words, at this time on the clock
    /// of the samples.
    TargetEnded {
        words: String,
        at_ns: u64,
    },
    /// Lines that it printed.
    Output(Vec<String>),
    /// End now: report what has come so far, without waiting for names.
    Finish,
}
