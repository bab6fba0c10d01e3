//! The *tables* of a profile: filled by a store and shared with its views.
//!
//! Each has two parts: a table that is never changed while a view holds it, and the data that the
//! store needs in addition to extend the table and to remove entries.
//!
//! - [`history`]: the kept samples, in one-second buckets
//! - [`histories`]: the kept samples of each event
//! - [`processes`]: processes and threads, as long as they are needed
//! - [`modules`]: the files that frames lie in
//! - [`names`]: names of frames, and the functions that they form
//! - [`sources`]: source locations of frames
//! - [`texts`]: the text of each name, once

mod histories;
mod history;
mod modules;
mod names;
mod processes;
mod sources;
mod texts;

pub use histories::EventId;
pub(crate) use histories::{Counted, Histories};
pub(crate) use history::{History, Sample};
pub(crate) use modules::{Module, ModuleTable, Modules};
pub(crate) use names::{NameTable, Names, Tag, UNMAPPED_CODE};
pub(crate) use processes::{Process, ProcessTable, Processes, Thread, ThreadSlot};
pub(crate) use sources::{CHAIN_MAX, Link, SourceTable, Sources};

use crate::intern::{FrameTable, StackTable};
use crate::probes::ProbeLog;
use crate::states::StateLog;
use crate::{Busy, Info};
use std::sync::Arc;

/// Everything that a store held at one moment. Cloning is cheap; used to make a view that differs
/// in one of the tables.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) history: History,
    /// The other events, whose samples are not in `history`.
    pub(crate) others: Arc<[Counted]>,
    pub(crate) stacks: StackTable,
    /// Samples of the event that the view counts, as a rule the first one.
    pub(crate) frames: FrameTable,
    pub(crate) names: NameTable,
    pub(crate) sources: SourceTable,
    pub(crate) modules: ModuleTable,
    pub(crate) processes: ProcessTable,
    pub(crate) info: Arc<Info>,
    /// What probes counted, in addition to the samples.
    pub(crate) probes: Arc<ProbeLog>,
    /// What threads did, if waiting time is counted.
    pub(crate) states: Arc<StateLog>,
    pub(crate) busy: Busy,
    pub(crate) begin_ns: Option<u64>,
    pub(crate) end_ns: Option<u64>,
    pub(crate) kept_seconds: f64,
}
