//! *Queries*: which samples count, and the shapes in which they are counted.
//!
//! A [`Query`] is scope × window × filter; each is independent of the others. Applied to a
//! [`View`](crate::View) it gives a [`Selection`]: the samples, with each stack expanded to
//! functions and filtered. All results are computed from a selection: functions, processes,
//! threads, CPUs and control groups, call trees in both directions, the page of one function, flame
//! graphs, heat maps.
//!
//! Each query goes over the samples only a few times, and over each stack once, however many
//! samples share it. That is why a million samples take only tens of milliseconds. Nothing here
//! starts a thread; long computations check a [`Cancel`] flag.
//!
//! - [`cancel`]: ending a query early
//! - [`scope`]: which threads and CPUs
//! - [`state`]: what a stack's thread did, for the filter
//! - [`shape`]: a stack as functions, after the filter
//! - [`selection`]: one pass over the samples and one over the stacks
//! - [`functions`]: self, total, names
//! - [`threads`]: processes and threads, each with its top function
//! - [`runs`]: samples in the order of groups of threads
//! - [`activity`]: what threads did, from another source than samples
//! - [`groups`]: by CPU, control group, user
//! - [`trend`]: the last ten seconds, second by second
//! - [`report`]: all of these rows at once
//! - [`tree`], [`sort`]: call trees as ranges of sorted stacks
//! - [`flame`]: a tree laid out in cells
//! - [`page`]: one function, its callers and callees
//! - [`code`]: one function, by address
//! - [`nameless`]: frames without a name, by module
//! - [`heat`]: samples by second and place in the second
//! - [`parts`]: samples of functions by part of the window
//! - [`traces`]: whole stacks by thread, for files
//! - [`stacks`]: whole stacks by process, for other programs

mod activity;
mod cancel;
mod code;
mod flame;
mod functions;
mod groups;
mod heat;
mod internals;
mod nameless;
mod own;
mod page;
mod parts;
mod plumbing;
mod report;
mod runs;
mod scope;
mod selection;
mod shape;
mod sort;
mod stacks;
mod state;
mod threads;
mod traces;
mod tree;
mod trend;

pub use activity::Doing;
pub use cancel::{Cancel, Cancelled};
pub use code::{CodeAddress, CodeGroup, CodePlace, FunctionCode};
pub use flame::{Flame, FlameBox};
pub use groups::GroupRow;
pub use heat::{HeatBy, HeatMap, HeatRow, HeatRows};
pub use nameless::Nameless;
pub use page::{FunctionPage, Neighbour, NeighbourKind};
pub(crate) use parts::Parts;
pub use scope::Scope;
pub use selection::Selection;
pub use stacks::{FrameModule, ProcessStack, StackFrame, StackProcess};
pub(crate) use traces::{Timed, Trace, TraceFrame};
pub use tree::{CallTree, Direction, GroupBy, Node, NodeKind, Pair};

use crate::{Filter, TimeRange};

/// Which samples are counted.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The threads and CPUs whose samples count.
    pub scope: Scope,
    /// The time range of the samples.
    pub window: TimeRange,
    /// Which of these samples count, and which frames of their stacks.
    pub filter: Filter,
}
