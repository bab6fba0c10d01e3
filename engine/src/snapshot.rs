//! A *snapshot* contains everything that one frame of the screen, or one report of batch output, is
//! made from. It is published as a whole and never changes; a paused view just does not take the
//! next one.

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

/// A report, the profile that it was made from, and everything that is needed to interpret its
/// numbers.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Number of the snapshot, rising.
    pub generation: u64,
    /// Functions, processes and threads of the window.
    pub report: Arc<Report>,
    /// The query of the report.
    pub asked: Asked,
    /// Number of samples in scope and window, before the filter.
    pub offered: u64,
    /// The store's contents, for queries that the report does not answer. `None` in snapshots that
    /// were not made from a store.
    pub view: Option<View>,
    /// All metrics of the profile, the view's own first; empty if it has only one.
    pub metrics: Arc<[Metered]>,
    /// The comparison with a baseline, if there is one.
    pub comparison: Comparison,
    /// What is missing of stacks and names, by cause.
    pub health: Health,
    /// What is sampled, and its state.
    pub run: Run,
    /// The source of the samples: a sampler or a file.
    pub source: Source,
    /// Where names are from, and which are still being looked up.
    pub names: Names,
    /// Probes of calls, and their counts.
    pub probes: Arc<Probes>,
    /// What threads did and for whom they waited; `None` if waits are not followed.
    pub waited: Option<Arc<Waited>>,
}

/// The query of a report.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The query itself, which can be applied to the view again.
    pub query: Query,
    /// Number of the query: it rises with each change by the user, and so identifies a query
    /// whichever snapshot it was applied to. 0 is the engine's own query.
    pub turn: u64,
    /// The requested span; at the beginning of a run the report covers less.
    pub window: Span,
}

impl Snapshot {
    /// Whether the report counts time, in nanoseconds, and not samples.
    pub fn counts_time(&self) -> bool {
        let view = self.view.as_ref();
        view.is_some_and(|view| view.info().metric.per_second() > 0)
    }

    /// When counting of waits began, on the clock of the samples, if the run began without it.
    /// `None` if waits are counted in the whole history, or not at all.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let mut views = self
            .metrics
            .iter()
            .filter_map(|metric| metric.view.as_ref());
        let all_ns = views.next()?.begin_ns();
        let waits = views.find(|view| view.info().metric.is_waiting())?;
        waits.begin_ns().filter(|_| waits.begin_ns() > all_ns)
    }

    /// The result of [`Snapshot::waits_since_ns`], if the requested window reaches back before that
    /// time.
    pub fn waits_missing_before_ns(&self) -> Option<u64> {
        let since_ns = self.waits_since_ns()?;
        let all = self.metrics.first()?.view.as_ref()?;
        let window = all.window(self.asked.query.window);
        (window.start_ns < since_ns).then_some(since_ns)
    }

    /// Returns the view for the metric with that index in [`Snapshot::metrics`].
    pub fn counted_in(&self, metric: usize) -> Option<&View> {
        match metric {
            0 => self.view.as_ref(),
            _ => self.metrics.get(metric)?.view.as_ref(),
        }
    }
}
