//! A *snapshot* is all that one frame of the screen, or one report of batch
//! output, is made from. It is published whole and never changes; pausing the
//! view is only not taking the next one.

mod baseline;
mod lacks;
mod metered;
mod names_from;
mod people;

pub use baseline::Baseline;
pub use lacks::BaselineLacks;
pub use metered::Metered;
pub use names_from::{NameSource, NamesFrom};
pub use people::People;

use crate::losses::Losses;
use probe::EngineKind;
use profile::diff::Diff;
use profile::{Health, NoName, Query, Report, RowName, View};
use std::sync::Arc;
use std::time::Duration;

/// The machine that is being looked at.
#[derive(Debug, Clone, Default)]
pub struct Host {
    pub name: String,
    /// As in `6.18.44`.
    pub kernel: String,
    /// As in `x86-64`.
    pub arch: String,
    /// CPUs online.
    pub cpus: u32,
    /// The only ones that are sampled, rising; empty: all of them.
    pub sampled_cpus: Vec<u16>,
}

impl Host {
    /// How many CPUs are sampled: what samples are held against.
    pub fn cpus_sampled(&self) -> u32 {
        match self.sampled_cpus.len() {
            0 => self.cpus,
            some => some as u32,
        }
    }

    pub fn is_sampled(&self, cpu: u16) -> bool {
        self.sampled_cpus.is_empty() || self.sampled_cpus.contains(&cpu)
    }

    /// `2 CPUs`, `CPU 1 of 2`, `CPUs 0-3,7 of 16`
    pub fn cpu_words(&self) -> String {
        let list = probe::cpus::list(self.sampled_cpus.iter().map(|cpu| u32::from(*cpu)));
        match self.sampled_cpus.len() {
            0 if self.cpus == 1 => "1 CPU".into(),
            0 => format!("{} CPUs", self.cpus),
            1 => format!("CPU {list} of {}", self.cpus),
            _ => format!("CPUs {list} of {}", self.cpus),
        }
    }
}

/// Whether there is still something to sample.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TargetState {
    /// The engine is loading; nothing is sampled yet.
    #[default]
    Starting,
    Running,
    /// It was sampled before; all there is of it has been read.
    Recorded,
    /// The target is gone. Data is kept. The text says who, when and how:
    /// `postgres[4121] ended 14:05:10, killed by SIGSEGV`.
    Exited(String),
    /// The engine stopped with an error; the text is the whole sentence.
    Failed(String),
}

/// The time that a report is asked to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Seconds(u32),
    /// All that is kept.
    All,
}

impl Span {
    /// What `,` and `.` step through.
    pub const STEPS: [Span; 4] = [
        Span::Seconds(1),
        Span::Seconds(10),
        Span::Seconds(60),
        Span::All,
    ];

    pub fn shorter(self) -> Span {
        let shorter = |step: &&Span| step.seconds() < self.seconds();
        *Self::STEPS.iter().rev().find(shorter).unwrap_or(&self)
    }

    pub fn longer(self) -> Span {
        let longer = |step: &&Span| step.seconds() > self.seconds();
        *Self::STEPS.iter().find(longer).unwrap_or(&self)
    }

    /// The largest number stands for all.
    fn seconds(self) -> u32 {
        match self {
            Span::Seconds(seconds) => seconds,
            Span::All => u32::MAX,
        }
    }
}

impl Default for Span {
    fn default() -> Self {
        Span::Seconds(10)
    }
}

/// Where the samples come from, if they are not taken now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The file's name, or `standard input`; clean.
    pub name: Arc<str>,
    /// What is missing of it because it ends in the middle or is damaged: a
    /// sentence.
    pub broken: Option<Arc<str>>,
    /// When it begins, in ms since 1970, and how long ago that was when it was
    /// opened; nothing if it does not say.
    pub taken: Option<(u64, Duration)>,
    pub lacks: Lacks,
}

/// What a source does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacks {
    /// When a sample was taken.
    pub time: bool,
    /// Numbers of processes and threads.
    pub people: bool,
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

/// A file whose symbols are being read.
#[derive(Debug, Clone)]
pub struct Loading {
    pub module: Arc<str>,
    /// 0 to 100, where it is known.
    pub percent: Option<u8>,
    pub what: &'static str,
    /// Over a network.
    pub is_remote: bool,
}

/// How samples are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sampler {
    /// How user stacks are walked.
    pub unwinding: &'static str,
    /// What samples wait in until they are read.
    pub buffers: String,
    /// Why the rate cannot be changed; nothing if it can.
    pub rate_is_fixed: Option<&'static str>,
    /// The kernel allows no more.
    pub rate_max_hz: Option<u32>,
}

impl Snapshot {
    /// The view that counts in the metric of that number, in [`Snapshot::metrics`].
    pub fn counted_in(&self, metric: usize) -> Option<&View> {
        match metric {
            0 => self.view.as_ref(),
            _ => self.metrics.get(metric)?.view.as_ref(),
        }
    }
}

impl Sampler {
    /// A sentence, if the rate cannot be changed.
    pub fn why_fixed(&self) -> Option<String> {
        let why = self.rate_is_fixed?;
        Some(format!("the rate stays as it is: {why}"))
    }
}

#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Counts up with every snapshot.
    pub generation: u64,
    pub report: Arc<Report>,
    /// What the report counts, to ask the view for more of the same.
    pub query: Query,
    /// Tells one query from the next, whatever snapshot it is asked of: it
    /// counts how often a knob was turned. 0 is the engine's own query.
    pub turn: u64,
    /// What all is compared with, if that is asked for.
    pub baseline: Option<Arc<Baseline>>,
    /// Function by function.
    pub difference: Option<Arc<Diff>>,
    /// Process by process, thread by thread.
    pub people: Option<Arc<People>>,
    pub baseline_lacks: Option<Arc<BaselineLacks>>,
    /// Samples in scope and window; the filter keeps those of the report.
    pub offered: u64,
    /// All that the file counts, the view's own metric first; of one that counts one
    /// thing only none is told.
    pub metrics: Arc<[Metered]>,
    /// The store as it was: for every question that the report does not answer.
    /// Nothing in snapshots that no store made.
    pub view: Option<View>,
    pub health: Health,
    pub host: Arc<Host>,
    /// CPUs that were busy in the last second, of those that are sampled.
    pub busy_cpus: f64,
    /// Since sampling began; of a recording how long it is.
    pub elapsed: Duration,
    /// Samples per second of a busy CPU by now; the report has that of its own.
    pub rate_hz: u32,
    /// Who takes the samples; `None` of a recording, or before it is known.
    pub engine: Option<EngineKind>,
    /// How; nothing of a recording, or before it is known.
    pub sampler: Option<Arc<Sampler>>,
    /// What is sampled: `system`, `postgres[4121]`, `3 processes`.
    pub scope: Arc<str>,
    /// The span the report was asked to cover; at the start it holds less.
    pub window: Span,
    pub target: TargetState,
    pub loading: Vec<Loading>,
    /// What was lost when; nothing if only the sum is known.
    pub losses: Option<Arc<Losses>>,
    /// By module; of a recording it is not known.
    pub names_from: Arc<NamesFrom>,
    /// Nothing while sampling.
    pub recording: Option<Recording>,
    /// The last lines that the started command printed, if one was started.
    pub command_output: Arc<[String]>,
}
