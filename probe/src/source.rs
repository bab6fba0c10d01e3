//! Where samples come from. Nothing above this crate knows which source runs.

use crate::events::call::Calls;
use crate::sample::Batch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// What takes samples: the word of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// A BPF program, which walks the stacks.
    Bpf,
    /// The kernel's `perf_event`, which copies stacks for us to walk.
    Perf,
}

impl EngineKind {
    /// The word for it, in output and on the command line.
    pub fn label(self) -> &'static str {
        match self {
            EngineKind::Bpf => "bpf",
            EngineKind::Perf => "perf",
        }
    }
}

/// What a source is and what it cannot give, in words for a person.
#[derive(Debug, Clone, Default)]
pub struct SourceInfo {
    /// Who takes the samples; `None` of a source that is made up, in tests.
    pub engine: Option<EngineKind>,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// Why it cannot be changed while samples are taken; `None` if it can.
    pub rate_is_fixed: Option<&'static str>,
    /// How user stacks are walked: `frame pointers`.
    pub unwinding: &'static str,
    /// What samples wait in until they are read: `one ring of 8 MB`.
    pub buffers: String,
    /// Sentences: what was degraded on this machine and why.
    pub notes: Vec<String>,
}

/// A stream of samples.
pub trait Source: Send {
    /// What it is, and what it cannot give.
    fn info(&self) -> SourceInfo;

    /// Everything that happened since the last call, in order of time. Waits
    /// up to `wait` for more, and returns earlier when a buffer fills up.
    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError>;

    /// Samples at another rate; says from when on, on the clock of the samples.
    /// Where it fails, the rate is as it was.
    fn set_rate(&mut self, rate_hz: u32) -> Result<u64, RateError>;

    /// Counts the waits of threads as well, from now on; says since when it does, on the clock of
    /// the samples. Asked again, nothing changes. The error is a sentence that says why it cannot.
    fn count_waits(&mut self) -> Result<u64, String> {
        Err("waits need BPF, and samples are taken by perf".into())
    }

    /// The probes of calls, once; or a sentence that says why there are none. Their
    /// samples come with those of the clock.
    fn calls(&mut self) -> Result<Calls, String> {
        Err("probes need BPF, and samples are taken by perf".into())
    }
}

/// A source that has failed for good.
#[derive(Debug, thiserror::Error)]
#[error("the sampler stopped: {0}")]
pub struct SourceError(pub String);

/// Why samples are taken at the rate that they were.
#[derive(Debug, thiserror::Error)]
#[error("the rate stays as it is: {0}")]
pub struct RateError(pub String);

impl RateError {
    pub(crate) fn refused(rate_hz: u32, error: &io::Error) -> Self {
        Self(format!("the kernel refuses {rate_hz} Hz: {error}"))
    }
}

/// How soon answers of threads aside end a wait at the earliest: several come after each other.
const SOON: Duration = Duration::from_millis(5);

/// Waits until one of these buffers has been filled as far as it wakes for, `answers` is readable, or
/// the time is over.
pub(crate) fn wait_for_any<'a>(
    buffers: impl Iterator<Item = BorrowedFd<'a>>,
    answers: Option<BorrowedFd<'a>>,
    wait: Duration,
) -> Result<(), SourceError> {
    let mut descriptors: Vec<PollFd<'_>> = answers
        .into_iter()
        .chain(buffers)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let begun = Instant::now();
    wait_for(&mut descriptors, wait)?;
    let (answers, buffers) = descriptors.split_at_mut(usize::from(answers.is_some()));
    let is_answered = answers.iter().any(is_readable) && !buffers.iter().any(is_readable);
    let too_soon = SOON.min(wait).saturating_sub(begun.elapsed());
    if is_answered && !too_soon.is_zero() {
        wait_for(buffers, too_soon)
    } else {
        Ok(())
    }
}

/// Waits until one of these is readable, or the time is over.
fn wait_for(descriptors: &mut [PollFd<'_>], wait: Duration) -> Result<(), SourceError> {
    let timeout =
        Timespec::try_from(wait).map_err(|_| SourceError("the waiting time is too long".into()))?;
    let begun = Instant::now();
    match poll(descriptors, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(SourceError(format!("poll: {error}"))),
    }
    // The event of a task that has ended is always ready, with nothing to read.
    let is_hung_up = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::HUP);
    if descriptors.iter().any(is_hung_up) && !descriptors.iter().any(is_readable) {
        std::thread::sleep(wait.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

fn is_readable(fd: &PollFd<'_>) -> bool {
    fd.revents().contains(PollFlags::IN)
}
