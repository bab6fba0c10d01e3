//! The interface to what follows the waits of a run.

use super::iterator::OpenWait;
use super::record::{EndedThread, ThreadTotals, WaitCounters};

/// Follows the waits of threads.
pub trait Follows {
    /// Returns the sums of threads that have ended and, if `all`, of those that live. `ended` are
    /// those that came with the samples.
    fn take(&mut self, ended: &[EndedThread], all: bool) -> Vec<ThreadTotals>;

    /// Returns the sums of the living threads.
    fn threads(&mut self) -> Vec<ThreadTotals>;

    /// Returns the waits that are not over and began later than `from_ns` and no later than
    /// `to_ns`.
    fn open(&mut self, from_ns: u64, to_ns: u64) -> Vec<OpenWait>;

    /// Returns the counters of stacks as of the last call of [`Follows::take`].
    fn counters(&self) -> WaitCounters;
}
