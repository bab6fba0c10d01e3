//! What others are compared with.

use profile::{Cancel, Query, Selection, View};
use std::sync::Arc;

/// A query, and the profile as it was.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Tells one from the next.
    number: u64,
    view: View,
    query: Query,
    source: Source,
    /// Whose samples they are, in words.
    whose: Arc<str>,
    other: Option<Other>,
}

/// What is counted otherwise on the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Those of another process, say.
    Scope,
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What was shown; when that begins.
    Shown { start_ns: u64 },
    /// Another recording.
    File,
}

impl Baseline {
    /// What is shown, and whose samples that are in words. `number` counts up, from 1.
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

    /// All of a recording, and its name.
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

    /// The baseline as it is compared with what `now` asks for:
    ///
    /// 1. A recording is counted by the filter of `now`, and as a whole: its processes are
    ///    others.
    /// 2. What was shown is narrowed as `now` was since: the same part is compared of both.
    /// 3. Where `now` is no part of what was shown, such as another process, that is what is
    ///    to be compared, and each side is counted by its own scope or filter.
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

    /// Whose samples they are, where other samples are counted on the other side.
    pub fn whose(&self) -> Option<&str> {
        Some(match self.other? {
            Other::Scope => &*self.whose,
            Other::Filter => "other filter",
        })
    }

    /// What it counts, with the names of today and in the metric of `now` if it has that.
    /// `None` if it was cancelled.
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

    /// Whether it is of the same store: then numbers of processes, threads and
    /// functions are the same.
    pub fn is_of_here(&self) -> bool {
        matches!(self.source, Source::Shown { .. })
    }

    /// The newest view that still has all of it: names that came later are
    /// those of both sides there.
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
