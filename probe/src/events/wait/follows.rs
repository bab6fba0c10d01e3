//! What is asked of what follows the waits of a run.

use super::iterator::OpenWait;
use super::record::{EndedThread, ThreadTotals, WaitCounters};

/// Follows the waits of threads.
pub trait Follows {
    /// The sums of threads that have ended, and if `all` of those that live. `ended` are those that
    /// came with the samples.
    fn take(&mut self, ended: &[EndedThread], all: bool) -> Vec<ThreadTotals>;

    /// The sums of the threads that live.
    fn threads(&mut self) -> Vec<ThreadTotals>;

    /// The waits that are not over and began later than `from_ns` and no later than `to_ns`.
    fn open(&mut self, from_ns: u64, to_ns: u64) -> Vec<OpenWait>;

    /// What was counted of stacks by the last call of [`Follows::take`].
    fn counters(&self) -> WaitCounters;
}
