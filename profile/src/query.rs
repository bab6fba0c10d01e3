//! *Queries*: which samples count, and the shapes in which they are counted.
//!
//! A [`Query`] is scope × window × filter; each is independent of the others.
//! Asked of a [`View`](crate::View) it gives a [`Selection`]: the samples, each
//! stack expanded to functions and filtered. All results come from a selection:
//! functions, processes, threads, CPUs and control groups, call trees in both
//! directions, the page of one function, flame graphs, heat maps.
//!
//! Samples are looked at a few times and each stack once, however many samples
//! share it, which is what makes a million samples a matter of tens of
//! milliseconds. Nothing here starts a thread; what takes long looks at a
//! [`Cancel`] flag.
//!
//! - [`scope`]: which threads and CPUs
//! - [`shape`]: a stack as functions, after the filter
//! - [`selection`]: one pass over the samples and one over the stacks
//! - [`functions`]: self, total, names
//! - [`threads`]: processes and threads, each with its top function
//! - [`runs`]: samples in the order of groups of threads
//! - [`groups`]: by CPU, control group, user
//! - [`trend`]: the last ten seconds, second by second
//! - [`tree`], [`sort`]: call trees as ranges of sorted stacks
//! - [`flame`]: a tree laid out in cells
//! - [`page`]: one function, its callers and callees
//! - [`code`]: one function, by address
//! - [`heat`]: samples by second and place in the second
//! - [`traces`]: whole stacks by thread, for files

mod code;
mod flame;
mod functions;
mod groups;
mod heat;
mod page;
mod runs;
mod scope;
mod selection;
mod shape;
mod sort;
mod threads;
mod traces;
mod tree;
mod trend;

pub use code::{CodeAddress, CodeGroup, CodePlace, FunctionCode};
pub use flame::{Flame, FlameBox};
pub use groups::{CpuRow, GroupRow};
pub use heat::{HeatBy, HeatMap, HeatRow, HeatRows};
pub use page::{FunctionPage, Neighbour, NeighbourKind};
pub use scope::Scope;
pub use selection::Selection;
pub(crate) use traces::{Place, Timed, Trace};
pub use tree::{CallTree, Direction, GroupBy, Node, NodeKind, Pair};

use crate::Filter;
use crate::store::{STAMP_NS, Stamps};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is counted.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub scope: Scope,
    pub window: TimeRange,
    pub filter: Filter,
}

/// A stretch of time on the clock of the samples, in steps of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub(crate) start_ns: Option<u64>,
    pub(crate) end_ns: Option<u64>,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

impl TimeRange {
    /// All that is kept.
    pub const ALL: TimeRange = TimeRange {
        start_ns: None,
        end_ns: None,
    };

    /// The last `window` before `now_ns`.
    pub fn last(window: Duration, now_ns: u64) -> Self {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Self {
            start_ns: now_ns.checked_sub(window_ns),
            end_ns: Some(now_ns),
        }
    }

    /// After `start_ns`, up to `end_ns`: ranges that meet share no sample.
    pub fn between(start_ns: u64, end_ns: u64) -> Self {
        Self {
            start_ns: Some(start_ns),
            end_ns: Some(end_ns),
        }
    }

    pub(crate) fn stamps(self) -> Stamps {
        Stamps {
            first: self.start_ns.map_or(0, |start| start / STAMP_NS + 1),
            last: self.end_ns.map_or(u64::MAX, |end| end / STAMP_NS),
        }
    }
}

/// A flag that ends a query early, from another thread.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// A query was cancelled; there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the queries that look at this flag, soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// To be asked now and then.
    pub(crate) fn check(&self) -> Result<(), Cancelled> {
        match self.is_cancelled() {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_meet_share_no_stamp() {
        let last = |now_ns| TimeRange::last(Duration::from_secs(1), now_ns).stamps();
        let (earlier, later) = (last(2_005_000_000), last(3_005_000_000));
        assert_eq!(earlier.last + 1, later.first);
        assert_eq!(later.last - later.first, 99);
        assert_eq!(last(5).first, 0, "from before time began");
    }
}
