//! The interface of sources of samples. No code above this crate depends on which source runs.

use crate::alarm::Alarm;
use crate::events::call::Calls;
use crate::sample::Batch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of source, as selected by `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// A BPF program, which walks the stacks.
    Bpf,
    /// The kernel's `perf_event`, which copies stacks that are walked in user space.
    Perf,
}

impl EngineKind {
    /// Returns its name in output and on the command line.
    pub fn label(self) -> &'static str {
        match self {
            EngineKind::Bpf => "bpf",
            EngineKind::Perf => "perf",
        }
    }
}

/// Describes a source and its limits, for the user.
#[derive(Debug, Clone, Default)]
pub struct SourceInfo {
    /// The kind of source; `None` for an artificial source in tests.
    pub engine: Option<EngineKind>,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// Why the rate cannot be changed while samples are taken; `None` if it can.
    pub rate_is_fixed: Option<&'static str>,
    /// How user stacks are walked, for example `frame pointers`.
    pub unwinding: &'static str,
    /// The buffers of samples, for example `one ring of 8 MB`.
    pub buffers: String,
    /// Sentences about what is degraded on this machine, and why.
    pub notes: Vec<String>,
}

/// Maximum time between two readings of a source while samples come; it is read earlier when much
/// happens. Its buffers hold samples of seconds.
pub const DRAIN: Duration = Duration::from_millis(100);

/// A stream of samples.
pub trait Source: Send {
    /// Returns its description and its limits.
    fn info(&self) -> SourceInfo;

    /// Returns everything that happened since the last call, in order of time. Waits up to `wait`
    /// for more if nothing happens, and [`DRAIN`] otherwise; returns earlier when a buffer fills up.
    fn poll(&mut self, wait: Duration) -> Result<Batch, SourceError>;

    /// Has an alarm end waits. Without one, and by sources that are not able to do so, no wait is
    /// longer than [`DRAIN`].
    fn wake_by(&mut self, _alarm: Arc<Alarm>) {}

    /// Changes the rate. Returns the time from which it is valid, on the clock of the samples. If
    /// this fails, the rate is unchanged.
    fn set_rate(&mut self, rate_hz: u32) -> Result<u64, RateError>;

    /// Starts to count the waits of threads as well. Returns the time from which they are counted,
    /// on the clock of the samples. Another call changes nothing. The error is a sentence that says
    /// why it is not possible.
    fn count_waits(&mut self) -> Result<u64, String> {
        Err("waits need BPF, and samples are taken by perf".into())
    }

    /// Returns the probes of calls, once; the error is a sentence that says why there are none.
    /// Their samples come together with those of the clock.
    fn calls(&mut self) -> Result<Calls, String> {
        Err("probes need BPF, and samples are taken by perf".into())
    }
}

/// The error of a source that has permanently failed.
#[derive(Debug, thiserror::Error)]
#[error("the sampler stopped: {0}")]
pub struct SourceError(pub String);

/// Why the rate could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("the rate stays as it is: {0}")]
pub struct RateError(pub String);

impl RateError {
    /// Makes the error for a kernel that refused the rate.
    pub(crate) fn refused(rate_hz: u32, error: &io::Error) -> Self {
        Self(format!("the kernel refuses {rate_hz} Hz: {error}"))
    }
}

/// Earliest time at which answers of other threads end a wait: several answers come in quick
/// succession.
const SOON: Duration = Duration::from_millis(5);

/// Waits until one of these buffers is filled to its wake-up mark, `answers` is readable, or the
/// time is over.
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
    // The event of a task that has ended is always ready, but has no data. Nothing else ends this
    // sleep, so that it is short.
    let is_hung_up = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::HUP);
    if descriptors.iter().any(is_hung_up) && !descriptors.iter().any(is_readable) {
        std::thread::sleep(wait.min(DRAIN).saturating_sub(begun.elapsed()));
    }
    Ok(())
}

fn is_readable(fd: &PollFd<'_>) -> bool {
    fd.revents().contains(PollFlags::IN)
}
