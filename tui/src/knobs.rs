//! The *knobs* say what is counted and in which unit. Each is turned by itself
//! and leaves the others where they are.

use crate::view_id::{Feature, ViewId};
use clap::ValueEnum;
use engine::snapshot::{Baseline, Span};
use profile::{Filter, ProcessId, Query, Scope, TimeRange};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knobs {
    /// What the scope was narrowed to, from the outside to the inside.
    pub scope: Vec<Narrowing>,
    pub window: Window,
    pub filter: Filter,
    /// Which of the things that the file counts, by number.
    pub metric: usize,
    /// Nothing: what each view usually counts in.
    pub unit: Option<Unit>,
    pub baseline: Option<Arc<Baseline>>,
    /// What differs from the baseline is shown, where a view can.
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

    /// What a view counts in until another unit is asked for.
    pub fn usual(view: ViewId) -> Unit {
        if view.has(Feature::People) {
            Unit::Cpus
        } else {
            Unit::Share
        }
    }

    /// The next one; without rate and time there are only two.
    pub fn next(self, has_time: bool) -> Unit {
        let at = Self::ALL.iter().position(|unit| *unit == self).unwrap_or(0);
        let next = Self::ALL.iter().cycle().skip(at + 1).take(Self::ALL.len());
        let next = next.copied().find(|unit| has_time || !unit.needs_time());
        next.unwrap_or(self)
    }

    /// Whether it takes a rate and a time to count in it.
    pub fn needs_time(self) -> bool {
        !matches!(self, Unit::Share | Unit::Samples)
    }

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
    pub part: Part,
    /// `postgres[4121]`, `3 processes`
    pub words: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Processes(Vec<ProcessId>),
    /// Each with its process.
    Threads(Vec<(ProcessId, u32)>),
}

/// The time that is looked at, on the clock of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Up to now.
    Last(Span),
    /// The time from a mark up to now.
    Since { mark_ns: u64 },
    /// A stretch that was marked, from the first to before the last.
    Between { start_ns: u64, end_ns: u64 },
}

impl Default for Window {
    fn default() -> Self {
        Window::Last(Span::default())
    }
}

impl Window {
    pub fn shorter(self) -> Window {
        match self {
            Window::Last(span) => Window::Last(span.shorter()),
            Window::Since { .. } | Window::Between { .. } => Window::default(),
        }
    }

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
            // A range begins after its start and ends with its end.
            Window::Between { start_ns, end_ns } => {
                TimeRange::between(start_ns.saturating_sub(1), end_ns.saturating_sub(1))
            }
        }
    }
}

impl Knobs {
    pub fn new(window: Window) -> Self {
        Knobs {
            window,
            ..Knobs::default()
        }
    }

    /// Whether the same samples count.
    pub fn asks_the_same(&self, other: &Knobs) -> bool {
        self.window == other.window
            && self.scope == other.scope
            && self.filter == other.filter
            && self.metric == other.metric
            && self.difference() == other.difference()
    }

    /// The baseline, while what differs from it is shown.
    pub fn difference(&self) -> Option<&Baseline> {
        self.baseline.as_deref().filter(|_| self.shows_difference)
    }

    /// What they ask a profile that has come in up to `now_ns`.
    pub fn query(&self, now_ns: u64) -> Query {
        let mut scope = Scope::default();
        // What is further inside was chosen among what was left.
        for narrowing in &self.scope {
            match &narrowing.part {
                Part::Processes(processes) => scope.processes.clone_from(processes),
                Part::Threads(threads) => scope.threads.clone_from(threads),
            }
        }
        Query {
            scope,
            window: self.window.until(now_ns),
            filter: self.filter.clone(),
        }
    }
}
