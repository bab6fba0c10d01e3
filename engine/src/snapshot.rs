//! A *snapshot* is all that one frame of the screen, or one report of batch
//! output, is made from. It is published whole and never changes; pausing the
//! view is only not taking the next one.

mod baseline;
mod comparison;
mod lacks;
mod metered;
mod names;
mod names_from;
mod people;
mod run;
mod source;
mod span;
mod waited;

pub use baseline::Baseline;
pub use comparison::Comparison;
pub use lacks::BaselineLacks;
pub use metered::Metered;
pub use names::{FetchState, Loading, Names};
pub use names_from::{NameSource, NamesFrom};
pub use people::People;
pub use run::{Run, TargetState};
pub use source::{Lacks, Machine, MachineState, Recording, Sampler, Source};
pub use span::Span;
pub use waited::{Link, Stretch, ThreadStates, Waited};

use crate::probes::Probes;
use profile::{Health, Query, Report, View};
use std::sync::Arc;

/// One answer of the engine: the report, the profile it was made from, and everything
/// that has to be known to read its numbers.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Counts up with every snapshot.
    pub generation: u64,
    /// Functions, processes and threads of the window.
    pub report: Arc<Report>,
    /// What the report was asked for.
    pub asked: Asked,
    /// Samples in scope and window; the filter keeps those of the report.
    pub offered: u64,
    /// The store as it was: for every question that the report does not answer.
    /// `None` in snapshots that no store made.
    pub view: Option<View>,
    /// All that the profile counts, the view's own metric first; empty if it counts
    /// only one thing.
    pub metrics: Arc<[Metered]>,
    /// What is shown against a baseline, if there is one.
    pub comparison: Comparison,
    /// What is missing of stacks and names, by cause.
    pub health: Health,
    /// What is sampled, and what became of it.
    pub run: Run,
    /// Who takes the samples, or which file they are from.
    pub source: Source,
    /// Where names come from, and which are still looked for.
    pub names: Names,
    /// Probes of calls, and what they counted.
    pub probes: Arc<Probes>,
    /// What threads did and for whom they waited; `None` where waits are not followed.
    pub waited: Option<Arc<Waited>>,
}

/// What a report was asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What the report counts, to ask the view for more of the same.
    pub query: Query,
    /// Number of the query: it goes up with each turn of a knob, so that it tells one
    /// query from the next whatever snapshot was asked. 0 is the engine's own query.
    pub turn: u64,
    /// The span that was to be covered; at the start the report holds less.
    pub window: Span,
}

impl Snapshot {
    /// Whether the report counts time, in nanoseconds, and not samples.
    pub fn counts_time(&self) -> bool {
        let view = self.view.as_ref();
        view.is_some_and(|view| view.info().metric.per_second() > 0)
    }

    /// Since when waits are counted, on the clock of the samples, if that is a part of the history
    /// only: the run began without them. `None` if they are counted in all of it, or are not.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let mut views = self
            .metrics
            .iter()
            .filter_map(|metric| metric.view.as_ref());
        let all_ns = views.next()?.begin_ns();
        let waits = views.find(|view| view.info().metric.is_waiting())?;
        waits.begin_ns().filter(|_| waits.begin_ns() > all_ns)
    }

    /// What [`Snapshot::waits_since_ns`] says, if the window that was asked for reaches back before
    /// that.
    pub fn waits_missing_before_ns(&self) -> Option<u64> {
        let since_ns = self.waits_since_ns()?;
        let all = self.metrics.first()?.view.as_ref()?;
        let window = all.window(self.asked.query.window);
        (window.start_ns < since_ns).then_some(since_ns)
    }

    /// The view that counts in the metric of that number, in [`Snapshot::metrics`].
    pub fn counted_in(&self, metric: usize) -> Option<&View> {
        match metric {
            0 => self.view.as_ref(),
            _ => self.metrics.get(metric)?.view.as_ref(),
        }
    }
}
