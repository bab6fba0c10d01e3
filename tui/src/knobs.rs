//! The *knobs* are the settings of which samples count and in which unit. Each can be changed
//! independently.

use crate::view_id::{Feature, ViewId};
use clap::ValueEnum;
use engine::snapshot::{Baseline, Span};
use profile::{Family, Filter, ProcessId, Query, Scope, TimeRange};
use std::sync::Arc;
use std::time::Duration;

/// All settings of what is counted and how it is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs {
    /// The processes or threads to which the scope was narrowed, step by step. Each step is within
    /// the previous one.
    pub scope: Vec<Narrowing>,
    pub window: Window,
    pub filter: Filter,
    /// The metric that is shown: its position in the list of the file's metrics.
    pub metric: usize,
    /// None means the usual unit of each view.
    pub unit: Option<Unit>,
    pub baseline: Option<Arc<Baseline>>,
    /// Whether views that can compare show what differs from the baseline.
    pub shows_difference: bool,
}

/// What numbers of samples are shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Percent of what is counted
    #[value(name = "percent", alias = "%")]
    Share,
    /// Percent of all CPUs of the machine
    Machine,
    /// Samples
    Samples,
    /// Milliseconds of CPU per second
    #[value(alias = "ms")]
    CpuMs,
    /// CPUs' worth of time
    #[value(alias = "cpu")]
    Cpus,
}

impl Unit {
    /// All units, in the order in which the key for units goes through them.
    pub const ALL: [Unit; 5] = [
        Unit::Share,
        Unit::Machine,
        Unit::Samples,
        Unit::CpuMs,
        Unit::Cpus,
    ];

    /// Returns the unit of a view, if the user has not chosen another one.
    pub fn usual(view: ViewId) -> Unit {
        if view.has(Feature::People) {
            Unit::Cpus
        } else {
            Unit::Share
        }
    }

    /// Returns the unit after this one. If rate or time is not known, there are only two.
    pub fn next(self, has_time: bool) -> Unit {
        let at = Self::ALL.iter().position(|unit| *unit == self).unwrap_or(0);
        let next = Self::ALL
            .iter()
            .cycle()
            .skip(at + 1)
            .take(Self::ALL.len())
            .copied()
            .find(|unit| has_time || !unit.needs_time());
        next.unwrap_or(self)
    }

    /// Whether this unit needs the rate and duration of the samples.
    pub fn needs_time(self) -> bool {
        !matches!(self, Unit::Share | Unit::Samples)
    }

    /// Returns the unit as it is written after numbers.
    pub fn words(self) -> &'static str {
        match self {
            Unit::Share => "%",
            Unit::Machine => "% of machine",
            Unit::Samples => "samples",
            Unit::CpuMs => "CPU-ms/s",
            Unit::Cpus => "CPU",
        }
    }
}

/// A step from the whole to a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    pub part: CountedAlone,
    /// The part in words: `postgres[4121]`, `3 processes`.
    pub words: Arc<str>,
}

/// Processes or threads to which the scope is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountedAlone {
    Processes(Vec<ProcessId>),
    /// Processes with all that they have started or start later.
    Families(Vec<Family>),
    /// Threads, each with its process.
    Threads(Vec<(ProcessId, u32)>),
    /// Machines by name, with all processes that run there, even later ones.
    Hosts(Vec<Arc<str>>),
}

/// The time whose samples count, on the clock of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last time up to now.
    Last(Span),
    /// The time from a mark up to now.
    Since { mark_ns: u64 },
    /// A range that the user marked, without its end.
    Between { start_ns: u64, end_ns: u64 },
}

impl Default for Window {
    fn default() -> Self {
        Window::Last(Span::default())
    }
}

impl Window {
    /// Returns the next shorter window. From a mark or a range it goes to the default.
    pub fn shorter(self) -> Window {
        match self {
            Window::Last(span) => Window::Last(span.shorter()),
            Window::Since { .. } | Window::Between { .. } => Window::default(),
        }
    }

    /// Returns the next longer window. From a mark or a range it goes to all that is kept.
    pub fn longer(self) -> Window {
        match self {
            Window::Last(span) => Window::Last(span.longer()),
            Window::Since { .. } | Window::Between { .. } => Window::Last(Span::All),
        }
    }

    fn until(self, now_ns: u64) -> TimeRange {
        match self {
            Window::Last(Span::Seconds(seconds)) => {
                TimeRange::last(Duration::from_secs(seconds.into()), now_ns)
            }
            Window::Last(Span::All) => TimeRange::last(Duration::MAX, now_ns),
            Window::Since { mark_ns } => TimeRange::between(mark_ns.min(now_ns), now_ns),
            // A `TimeRange` excludes its start and includes its end; this window is the other way
            // round.
            Window::Between { start_ns, end_ns } => {
                TimeRange::between(start_ns.saturating_sub(1), end_ns.saturating_sub(1))
            }
        }
    }
}

impl Knobs {
    /// Returns knobs of which only the window is set.
    pub fn new(window: Window) -> Self {
        Knobs {
            window,
            ..Knobs::default()
        }
    }

    /// Whether both count the same samples.
    pub fn asks_the_same(&self, other: &Knobs) -> bool {
        self.window == other.window
            && self.scope == other.scope
            && self.filter == other.filter
            && self.metric == other.metric
            && self.difference() == other.difference()
    }

    /// Returns the baseline, if a comparison with it is shown.
    pub fn difference(&self) -> Option<&Baseline> {
        self.baseline.as_deref().filter(|_| self.shows_difference)
    }

    /// Returns the query for a profile whose last sample was taken at `now_ns`.
    pub fn query(&self, now_ns: u64) -> Query {
        let mut scope = Scope::default();
        // A later narrowing replaces an earlier one of the same kind, because it was chosen among
        // the remaining rows.
        for narrowing in &self.scope {
            match &narrowing.part {
                CountedAlone::Processes(processes) => scope.processes.clone_from(processes),
                CountedAlone::Families(families) => scope.families.clone_from(families),
                CountedAlone::Threads(threads) => scope.threads.clone_from(threads),
                CountedAlone::Hosts(hosts) => scope.hosts.clone_from(hosts),
            }
        }
        Query {
            scope,
            window: self.window.until(now_ns),
            filter: self.filter.clone(),
        }
    }
}
