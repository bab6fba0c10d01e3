//! The *knobs* say which samples count and in which unit. Each can be changed without the
//! others.

use crate::view_id::{Feature, ViewId};
use clap::ValueEnum;
use engine::snapshot::{Baseline, Span};
use profile::{Family, Filter, ProcessId, Query, Scope, TimeRange};
use std::sync::Arc;
use std::time::Duration;

/// All that a user has set about what is counted and how it is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs {
    /// The processes or threads that the scope was narrowed to, step by step. Each is
    /// within the one before.
    pub scope: Vec<Narrowing>,
    pub window: Window,
    pub filter: Filter,
    /// Which metric of the file is shown: its position in the list of metrics.
    pub metric: usize,
    /// None: each view counts in its usual unit.
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
    pub const ALL: [Unit; 5] = [
        Unit::Share,
        Unit::Machine,
        Unit::Samples,
        Unit::CpuMs,
        Unit::Cpus,
    ];

    /// Returns the unit of a view until the user asks for another one.
    pub fn usual(view: ViewId) -> Unit {
        if view.has(Feature::People) {
            Unit::Cpus
        } else {
            Unit::Share
        }
    }

    /// Returns the unit after this one. Without a known rate and time there are only two.
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

    /// Whether rate and time of the samples have to be known to count in this unit.
    pub fn needs_time(self) -> bool {
        !matches!(self, Unit::Share | Unit::Samples)
    }

    /// Returns the unit as it is written behind numbers.
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

/// One step from the whole towards a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    pub part: CountedAlone,
    /// `postgres[4121]`, `3 processes`
    pub words: Arc<str>,
}

/// Processes or threads that are counted alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountedAlone {
    Processes(Vec<ProcessId>),
    /// Processes with all that they have started or start later.
    Families(Vec<Family>),
    /// Each with its process.
    Threads(Vec<(ProcessId, u32)>),
    /// Machines by name, with whatever runs there later.
    Hosts(Vec<Arc<str>>),
}

/// The time whose samples count, on the clock of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Up to now.
    Last(Span),
    /// The time from a mark up to now.
    Since { mark_ns: u64 },
    /// A stretch that the user marked, without its end.
    Between { start_ns: u64, end_ns: u64 },
}

impl Default for Window {
    fn default() -> Self {
        Window::Last(Span::default())
    }
}

impl Window {
    /// Returns the next shorter window. From a mark or a stretch it goes to the default.
    pub fn shorter(self) -> Window {
        match self {
            Window::Last(span) => Window::Last(span.shorter()),
            Window::Since { .. } | Window::Between { .. } => Window::default(),
        }
    }

    /// Returns the next longer window. From a mark or a stretch it goes to all that is
    /// kept.
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
            // A `TimeRange` is without its start and with its end: the other way round.
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

    /// Whether the same samples count with both.
    pub fn asks_the_same(&self, other: &Knobs) -> bool {
        self.window == other.window
            && self.scope == other.scope
            && self.filter == other.filter
            && self.metric == other.metric
            && self.difference() == other.difference()
    }

    /// Returns the baseline, if a comparison with it is to be shown.
    pub fn difference(&self) -> Option<&Baseline> {
        self.baseline.as_deref().filter(|_| self.shows_difference)
    }

    /// Returns the query for a profile whose last sample is of `now_ns`.
    pub fn query(&self, now_ns: u64) -> Query {
        let mut scope = Scope::default();
        // A later narrowing replaces an earlier one of its kind: it was chosen among what
        // was left.
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
