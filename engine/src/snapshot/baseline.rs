//! The baseline of a comparison.

use profile::{Cancel, Query, Selection, View};
use std::sync::Arc;

/// A query, and the profile to which it applies.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Distinguishes one baseline from the next.
    number: u64,
    view: View,
    query: Query,
    source: Source,
    /// Description of the samples.
    whose: Arc<str>,
    other: Option<Other>,
}

/// How the baseline differs from what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Another scope, such as another process.
    Scope,
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The displayed scope at an earlier time, with the start of its window.
    Shown { start_ns: u64 },
    /// Another recording.
    File,
}

impl Baseline {
    /// Makes a baseline of what is displayed, with a description of its samples. `number` rises,
    /// from 1.
    pub fn shown(
        number: u64,
        view: View,
        query: Query,
        start_ns: u64,
        whose: impl Into<Arc<str>>,
    ) -> Self {
        Baseline {
            number,
            view,
            query,
            source: Source::Shown { start_ns },
            whose: whose.into(),
            other: None,
        }
    }

    /// Makes a baseline of a whole recording, with its name.
    pub fn of_file(view: View, name: impl Into<Arc<str>>) -> Self {
        Baseline {
            number: 0,
            view,
            query: Query::default(),
            source: Source::File,
            whose: name.into(),
            other: None,
        }
    }

    /// Returns the baseline as it is compared with the query `now`:
    ///
    /// 1. A recording is counted as a whole by the filter of `now`: its processes are others.
    /// 2. What was displayed is narrowed as `now` was since: the same part of both is compared.
    /// 3. If `now` is not a part of what was displayed, such as another process, the difference is
    ///    what is wanted, and each side is counted by its own scope or filter.
    pub fn beside(&self, now: &Query) -> Baseline {
        let mut baseline = self.clone();
        let Query { scope, filter, .. } = &mut baseline.query;
        let is_file = self.source == Source::File;
        if is_file || now.filter.extends(filter) {
            filter.clone_from(&now.filter);
        }
        if !is_file && now.scope.is_within(scope) {
            scope.clone_from(&now.scope);
        }
        baseline.other = match (*scope != now.scope, *filter != now.filter) {
            (true, _) => Some(Other::Scope),
            (false, true) => Some(Other::Filter),
            (false, false) => None,
        };
        baseline
    }

    /// Description of its samples, if the other side counts different ones.
    pub fn whose(&self) -> Option<&str> {
        Some(match self.other? {
            Other::Scope => &*self.whose,
            Other::Filter => "other filter",
        })
    }

    /// Selects its samples, with current names, and in the metric of `now` if it has that. `None`
    /// if it was cancelled.
    pub fn select(&self, now: &View, cancel: &Cancel) -> Option<Selection> {
        let newest = self.newest(now);
        let wanted = &now.info().metric;
        let other = if newest.info().metric == *wanted {
            None
        } else {
            let event = newest.events().find(|(_, metric, _)| *metric == wanted);
            event.and_then(|(event, ..)| newest.of_event(event))
        };
        let view = other.as_ref().unwrap_or(newest);
        view.select(&self.query, cancel).ok()
    }

    /// Whether it is from the same store: then numbers of processes, threads and functions are the
    /// same.
    pub fn is_of_here(&self) -> bool {
        matches!(self.source, Source::Shown { .. })
    }

    /// Returns the newest view that still has all its samples: then names that were found later
    /// apply to both sides.
    fn newest<'a>(&'a self, now: &'a View) -> &'a View {
        let Source::Shown { start_ns } = self.source else {
            return &self.view;
        };
        let kept_ns = (now.kept_seconds() * 1e9) as u64;
        let oldest_ns = now
            .end_ns()
            .map_or(u64::MAX, |end| end.saturating_sub(kept_ns));
        if start_ns >= oldest_ns {
            now
        } else {
            &self.view
        }
    }
}

impl PartialEq for Baseline {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
