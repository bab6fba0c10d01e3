//! Computes all rows of a selection at once, as a [`Report`].

use super::selection::Selection;
use super::threads::{self, People};
use super::trend::Trends;
use super::{Cancel, Query, functions};
use crate::few;
use crate::tables::Tag;
use crate::{Completeness, Ending, NoName, Report, Store, TimeRange, TrendPeaks};
use std::cmp::Reverse;
use std::time::Duration;

impl Store {
    /// Reports what used the CPUs in the last `window` before `now_ns`.
    pub fn report(&mut self, window: Duration, now_ns: u64) -> Report {
        let generation = self.next_generation();
        let query = Query {
            window: TimeRange::last(window, now_ns),
            ..Query::default()
        };
        let selected = self.view().select(&query, &Cancel::new());
        let selection = selected.expect("nobody cancels it");
        Report {
            generation,
            ..selection.report()
        }
    }
}

impl Selection {
    /// Computes all rows, for the screen.
    pub fn report(&self) -> Report {
        self.report_with(&Trends::collect(self))
    }

    /// Computes all rows like [`Selection::report`], but without trends, which need a second pass
    /// over the samples.
    pub fn report_without_trends(&self) -> Report {
        self.report_with(&Trends::none())
    }

    fn report_with(&self, trends: &Trends) -> Report {
        let functions = functions::rows(self, trends);
        let name = |function| functions.name(function);
        let People { processes, threads } = threads::rows(self, name, trends);
        Report {
            generation: 0,
            window: self.window(),
            samples: self.samples,
            rate_hz: self.rate_hz(),
            reweighed: self.reweighed(),
            hides_samples: self.hides_samples(),
            samples_kept: self.view.samples(),
            kept_seconds: self.view.kept_seconds(),
            completeness: self.completeness(),
            functions: functions.rows,
            owners: self.view.tables.names.owners().clone(),
            processes,
            threads,
            cpus: self.cpus(),
            peaks: TrendPeaks::default(),
        }
    }

    /// What the selected stacks lack, and how many of their frames have names.
    ///
    /// A frame is pending if it has neither a name nor a reason for having none.
    pub fn completeness(&self) -> Completeness {
        let by_tag = |tag: Tag| self.tags[tag.index()];
        let mut unnamed: Vec<(NoName, u64)> = NoName::ALL
            .into_iter()
            .map(|reason| (reason, by_tag(Tag::unnamed(reason))))
            .filter(|(_, frames)| *frames > 0)
            .collect();
        few::sort_by_key(&mut unnamed, |(reason, frames)| {
            (Reverse(*frames), reason.label())
        });
        let unnamed_sum: u64 = unnamed.iter().map(|(_, frames)| frames).sum();
        let mut endings: Vec<(Ending, u64)> = Ending::ALL
            .into_iter()
            .zip(self.endings)
            .filter(|(_, samples)| *samples > 0)
            .collect();
        few::sort_by_key(&mut endings, |(ending, samples)| {
            (Reverse(*samples), *ending)
        });
        let sum = |counts: fn(Ending) -> bool| {
            let counted = endings.iter().filter(|(ending, _)| counts(*ending));
            counted.map(|(_, samples)| samples).sum()
        };
        let frames = self.tags.iter().sum();
        let named = by_tag(Tag::NAMED);
        Completeness {
            user_stacks: sum(Ending::is_user_stack),
            whole: sum(Ending::is_whole),
            endings,
            frames,
            named,
            pending: frames - named - unnamed_sum,
            unnamed,
        }
    }
}
