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
    /// Samples per second of a busy CPU by now; the report has that of its own.
    pub rate_hz: u32,
    /// Who takes the samples; `None` of a recording, or before it is known.
    pub engine: Option<EngineKind>,
    /// How they are taken; `None` of a recording, or before it is known.
    pub sampler: Option<Arc<Sampler>>,
    /// The file that they are read from; `None` while sampling.
    pub recording: Option<Recording>,
    /// The machines whose samples come here while they are taken; empty unless there are
    /// several.
    pub machines: Arc<[Machine]>,
    /// How the budget of CPU time stands; `None` without one.
    pub budget: Option<Budget>,
    /// Why waits are not counted though [`Command::CountWaits`](crate::Command::CountWaits) asked
    /// for it: a sentence.
    pub waits_refused: Option<Arc<str>>,
}

/// How samples are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sampler {
    /// How user stacks are walked.
    pub unwinding: &'static str,
    /// What samples wait in until they are read.
    pub buffers: String,
    /// Why the rate cannot be changed; `None` if it can.
    pub rate_is_fixed: Option<&'static str>,
    /// The kernel allows no more.
    pub rate_max_hz: Option<u32>,
}

impl Sampler {
    /// A sentence, if the rate cannot be changed.
    pub fn why_fixed(&self) -> Option<String> {
        let why = self.rate_is_fixed?;
        Some(format!("the rate stays as it is: {why}"))
    }
}

/// Where the samples come from, if they are not taken now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The file's name, or `standard input`; clean.
    pub name: Arc<str>,
    /// How it was opened, to type it again; empty where there is no file.
    pub path: PathBuf,
    /// What is missing of it because it ends in the middle or is damaged: a
    /// sentence.
    pub broken: Option<Arc<str>>,
    /// When it begins, in ms since 1970, and how long ago that was when it was
    /// opened; `None` if it does not say.
    pub taken: Option<(u64, Duration)>,
    /// What it does not know.
    pub lacks: Lacks,
}

/// One of several machines whose samples come while they are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// What it is called; clean.
    pub name: Arc<str>,
    /// Whether its samples come.
    pub state: MachineState,
    /// How many samples came.
    pub samples: u64,
    /// How many it lost, because a buffer was full there.
    pub lost: u64,
    /// How long ago samples came last; `None` if none did.
    pub silent: Option<Duration>,
    /// How many ms its clock is ahead of ours. Its times are moved back by that.
    pub ahead_ms: i64,
}

/// Whether samples of a machine come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// There is no connection yet.
    Connecting,
    /// They come.
    Sampling,
    /// None come any more, and why: a sentence, clean.
    Gone(Arc<str>),
}

/// What a source does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacks {
    /// When a sample was taken.
    pub time: bool,
    /// Numbers of processes and threads.
    pub people: bool,
    /// Which frames had no name: what stands in the place of a name looks like one.
    pub unnamed: bool,
}

impl Recording {
    /// Takes out of a report what the source made up, and, once all has been
    /// read, the hope for names that did not come.
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
