//! Where samples come from. Nothing above this crate knows which source runs.

use crate::sample::Batch;
use std::time::Duration;

/// What a source is and what it cannot give, in words for a person.
#[derive(Debug, Clone, Default)]
pub struct SourceInfo {
    /// `bpf`, `perf`, `synthetic`.
    pub engine: &'static str,
    pub rate_hz: u32,
    /// How user stacks are walked: `frame pointers`.
    pub unwinding: &'static str,
    /// Sentences: what was degraded on this machine and why.
    pub notes: Vec<String>,
}

/// A stream of samples.
pub trait Source: Send {
    fn info(&self) -> SourceInfo;

    /// Everything that happened since the last call, in order of time. Waits
    /// up to `wait` for more, and returns earlier when a buffer fills up.
    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError>;
}

/// A source that has failed for good.
#[derive(Debug, thiserror::Error)]
#[error("the sampler stopped: {0}")]
pub struct SourceError(pub String);
