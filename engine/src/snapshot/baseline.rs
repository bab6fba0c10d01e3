//! What others are compared with.

use profile::{Cancel, Filter, Query, Selection, View};

/// A query, and the profile as it was.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Tells one from the next.
    number: u64,
    view: View,
    query: Query,
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// What was shown; when that begins.
    Shown { start_ns: u64 },
    /// Another recording.
    File,
}

impl Baseline {
    /// What is shown. `number` counts up, from 1.
    pub fn shown(number: u64, view: View, query: Query, start_ns: u64) -> Self {
        Baseline {
            number,
            view,
            query,
            source: Source::Shown { start_ns },
        }
    }

    /// All of a recording.
    pub fn of_file(view: View) -> Self {
        Baseline {
            number: 0,
            view,
            query: Query::default(),
            source: Source::File,
        }
    }

    /// A recording is counted by the filter of what it is compared with. What was
    /// shown was counted by its own: that may be what one wants to compare.
    pub fn beside(&self, filter: &Filter) -> Baseline {
        let mut baseline = self.clone();
        if matches!(self.source, Source::File) {
            baseline.query.filter = filter.clone();
        }
        baseline
    }

    /// What it counts, with the names of today. `None` if it was cancelled.
    pub fn select(&self, now: &View, cancel: &Cancel) -> Option<Selection> {
        self.newest(now).select(&self.query, cancel).ok()
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
        match start_ns >= oldest_ns {
            true => now,
            false => &self.view,
        }
    }
}

impl PartialEq for Baseline {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
