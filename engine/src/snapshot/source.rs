//! The source of the samples: a machine and a sampler, or a recording.

use crate::governor::Budget;
use probe::EngineKind;
use profile::{Host, NoName, Report, RowName};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the samples come from, and how they are taken.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The machine that is sampled.
    pub host: Arc<Host>,
    /// Current sampling rate of a busy CPU, per second; the report has its own.
    pub rate_hz: u32,
    /// How samples are taken; `None` for a recording, or if unknown yet.
    pub engine: Option<EngineKind>,
    /// Details of sampling; `None` for a recording, or if unknown yet.
    pub sampler: Option<Arc<Sampler>>,
    /// The file that they are read from; `None` while sampling.
    pub recording: Option<Recording>,
    /// The machines whose samples are received; empty unless there are several.
    pub machines: Arc<[Machine]>,
    /// State of the CPU budget; `None` without one.
    pub budget: Option<Budget>,
    /// Why waits are not counted although [`Command::CountWaits`](crate::Command::CountWaits)
    /// requested it: a sentence.
    pub waits_refused: Option<Arc<str>>,
}

/// Details of sampling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sampler {
    /// How user stacks are walked, in words.
    pub unwinding: &'static str,
    /// Description of the buffers in which samples wait until they are read.
    pub buffers: String,
    /// Why the rate cannot be changed; `None` if it can.
    pub rate_is_fixed: Option<&'static str>,
    /// The highest rate that the kernel allows.
    pub rate_max_hz: Option<u32>,
}

impl Sampler {
    /// A sentence why the rate cannot be changed; `None` if it can.
    pub fn why_fixed(&self) -> Option<String> {
        let why = self.rate_is_fixed?;
        Some(format!("the rate stays as it is: {why}"))
    }
}

/// The file that samples are read from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The file's name, or `standard input`; clean.
    pub name: Arc<str>,
    /// Path as given when it was opened; empty if there is no file.
    pub path: PathBuf,
    /// A sentence about what is missing because the file is cut or damaged.
    pub broken: Option<Arc<str>>,
    /// When it begins, in ms since 1970, and how long ago that was when it was opened; `None` if
    /// unknown.
    pub taken: Option<(u64, Duration)>,
    /// What the file does not contain.
    pub lacks: Lacks,
}

/// One of several machines whose samples are received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine; safe to print.
    pub name: Arc<str>,
    /// State of the connection.
    pub state: MachineState,
    /// Number of received samples.
    pub samples: u64,
    /// Number of samples that the machine lost because a buffer was full.
    pub lost: u64,
    /// Time since samples were last received; `None` if there were none.
    pub silent: Option<Duration>,
    /// Milliseconds that its clock is ahead of ours. Its times are shifted by that.
    pub ahead_ms: i64,
}

/// State of the connection to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// There is no connection yet.
    Connecting,
    /// Samples are being received.
    Sampling,
    /// The connection has ended, for this reason: a sentence, safe to print.
    Gone(Arc<str>),
}

/// What a source does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacks {
    /// The times of samples.
    pub time: bool,
    /// The pids and tids.
    pub people: bool,
    /// Which frames had no name: what stands in place of a name looks like one.
    pub unnamed: bool,
}

impl Recording {
    /// Removes from a report what the source made up. Once everything has been read, names that did
    /// not come are no longer reported as pending.
    pub fn correct(&self, is_over: bool, report: &mut Report) {
        if self.lacks.people {
            report.threads.clear();
        }
        if !is_over {
            return;
        }
        for row in &mut report.functions {
            if row.name_state == RowName::Pending {
                row.name_state = RowName::Unnamed(NoName::NotFoundInTime);
            }
        }
        let completeness = &mut report.completeness;
        let pending = std::mem::take(&mut completeness.pending);
        if pending > 0 {
            completeness.unnamed.push((NoName::NotFoundInTime, pending));
        }
    }
}
