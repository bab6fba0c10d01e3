//! The *tables* of a profile: what a store fills and its views share.
//!
//! Each comes in two halves: a table that never changes while somebody else holds
//! it, and what the store needs beside it to add to the table and to forget.
//!
//! - [`history`]: the kept samples, in one-second buckets
//! - [`histories`]: those of each event
//! - [`processes`]: processes and threads, as long as they matter
//! - [`modules`]: what frames lie in
//! - [`names`]: names of frames, and the functions that they make
//! - [`sources`]: where frames lie in source text

mod histories;
mod history;
mod modules;
mod names;
mod processes;
mod sources;

pub use histories::EventId;
pub(crate) use histories::{Counted, Histories};
pub(crate) use history::{History, Sample};
pub(crate) use modules::{Module, ModuleTable, Modules};
pub(crate) use names::{NameTable, Names, Tag, UNMAPPED_CODE};
pub(crate) use processes::{Process, ProcessTable, Processes, Thread, ThreadSlot};
pub(crate) use sources::{CHAIN_MAX, Link, SourceTable, Sources};

use crate::intern::StackTable;
use crate::probes::ProbeLog;
use crate::states::StateLog;
use crate::{Busy, Frame, Info};
use std::sync::Arc;

/// Everything that a store held at one moment. Cheap to clone, for a view that
/// differs in one of them.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) history: History,
    /// The events that `history` is not of.
    pub(crate) others: Arc<[Counted]>,
    pub(crate) stacks: StackTable,
    pub(crate) frames: Arc<Vec<Frame>>,
    pub(crate) names: NameTable,
    pub(crate) sources: SourceTable,
    pub(crate) modules: ModuleTable,
    pub(crate) processes: ProcessTable,
    pub(crate) info: Arc<Info>,
    /// What probes counted beside the samples.
    pub(crate) probes: Arc<ProbeLog>,
    /// What threads did, where time waited is counted.
    pub(crate) states: Arc<StateLog>,
    pub(crate) busy: Busy,
    pub(crate) begin_ns: Option<u64>,
    pub(crate) end_ns: Option<u64>,
    pub(crate) kept_seconds: f64,
}
