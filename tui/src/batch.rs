//! *Batch output*: one report as text, for a file, a ticket or another program. It turns data into
//! a string, and does no input or output.
//!
//! - [`text`]: two header lines and a table, for people
//! - [`csv`]: one line per function, for spreadsheets
//! - [`json`]: one object per report and line, for programs
//! - [`markdown`]: a summary in a few lines, for language models
//! - [`plain`]: escapes control characters
//!
//! `docs/batch-json.md` specifies CSV and JSON.

mod csv;
mod json;
mod markdown;
/// The functions of programs' own code that cause what is hot.
mod own;
mod text;

use crate::choices::Format;
use crate::words::plain::plain;
use crate::words::{held, metric};
use engine::snapshot::{Snapshot, TargetState, ThreadStates};
use probe::WaitState;
use profile::{FunctionRow, Metric, View, percent};
use std::borrow::Cow;

/// The data for a report.
#[derive(Debug, Clone, Copy)]
pub struct BatchReport<'a> {
    pub snapshot: &'a Snapshot,
    /// The version of proftop.
    pub version: &'a str,
    /// The end of the window on the wall clock.
    pub time_unix_ms: u64,
    /// The processes of the target; empty for the whole machine.
    pub pids: &'a [u32],
    /// Whether the target is limited in other ways as well: by user, name, CPUs.
    pub has_other_filters: bool,
    /// Maximum number of functions. None means all.
    pub top: Option<usize>,
    /// Text only: maximum length of lines; names are cut for it.
    pub width: Option<usize>,
    /// Markdown only: maximum length of the report, in tokens.
    pub tokens_max: usize,
}

/// A note is added if stacks stand for more time than threads had, by more than one part in this
/// many.
const MORE_PART: u64 = 50;

impl BatchReport<'_> {
    /// Returns the whole report, with a newline at its end. `is_first` says whether it begins the
    /// output: CSV has its head only there.
    pub fn render(&self, format: Format, is_first: bool) -> String {
        match format {
            Format::Text => text::render(self),
            Format::Csv if is_first => csv::header() + &csv::rows(self),
            Format::Csv => csv::rows(self),
            Format::Json => json::render(self),
            Format::Md => markdown::render(self),
        }
    }

    /// Returns sentences that are important but have no place in the format: CSV has only records.
    /// They are printed separately.
    pub fn beside(&self, format: Format) -> Vec<String> {
        let waited = self
            .snapshot
            .waited
            .iter()
            .filter(|_| format == Format::Csv);
        let deadlocks = waited.flat_map(|waited| held::deadlocks(waited));
        let said = deadlocks.map(|one| format!("DEADLOCK: {} {}", one.all(), one.doing()));
        said.map(|said| plain(&said).into_owned()).collect()
    }

    /// Returns the section of Markdown on how exact the numbers are, and on what is missing.
    pub fn doubt(&self) -> String {
        markdown::doubt(self)
    }

    /// Returns the metric, as `--metric` names it.
    fn metric_word(&self) -> &str {
        match self.snapshot.view.as_ref().map(View::info) {
            Some(info) if info.metric != Metric::default() => &info.metric.name,
            _ => "on-cpu",
        }
    }

    /// Returns the metric, if it is neither time nor samples of time on CPUs.
    fn events(&self) -> Option<&Metric> {
        let metric = &self.snapshot.view.as_ref()?.info().metric;
        (!self.counts_time() && *metric != Metric::default()).then_some(metric)
    }

    /// Returns an amount in words: `3,277 samples`, `1,203 page faults`.
    fn counted(&self, amount: u64) -> String {
        metric::counted_by(self.events(), amount)
    }

    /// Returns the length of the window. None for a file without times.
    fn window_seconds(&self) -> Option<f64> {
        let recording = self.snapshot.source.recording.as_ref();
        let holds_time = recording.is_none_or(|recording| !recording.lacks.time);
        holds_time.then(|| self.snapshot.report.window.seconds())
    }

    /// Returns how many CPUs the samples stand for. None if rate or time is not known, or if the
    /// metric is not time on CPUs.
    fn cpus_in_samples(&self) -> Option<f64> {
        let report = &self.snapshot.report;
        let seconds = self.window_seconds().filter(|seconds| *seconds > 0.0)?;
        let is_known = report.rate_hz > 0 && !self.counts_time() && self.events().is_none();
        // A busy CPU has `rate_hz` samples a second.
        is_known.then(|| report.samples as f64 / (f64::from(report.rate_hz) * seconds))
    }

    /// Whether amounts are nanoseconds instead of samples.
    fn counts_time(&self) -> bool {
        self.snapshot.counts_time()
    }

    /// Says why nothing was sampled.
    fn nothing(&self) -> &'static str {
        let is_filtered = !self.snapshot.asked.query.filter.is_empty();
        match (is_filtered, self.counts_time()) {
            (true, _) => "nothing ran, or nothing that the filter keeps",
            (false, true) => {
                "no wait ended, and those that go on are known after two seconds, if the memory of \
                 their processes may be read"
            }
            (false, false) if self.events().is_some() => "it did not happen",
            (false, false) if self.snapshot.source.recording.is_some() => {
                "the recording holds no sample of this time"
            }
            (false, false) => "nothing ran (--metric off-cpu tells what threads wait for)",
        }
    }

    /// Returns the functions to show, and the others.
    fn split(&self) -> (&[FunctionRow], &[FunctionRow]) {
        let functions = &self.snapshot.report.functions;
        let shown = self.top.unwrap_or(functions.len()).min(functions.len());
        functions.split_at(shown)
    }

    /// Returns sentences that are important for reading the numbers.
    fn notes(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let target = match &self.snapshot.run.target {
            TargetState::Starting | TargetState::Running | TargetState::Recorded => None,
            TargetState::Exited { words, .. } | TargetState::Failed(words) => Some(words.as_str()),
        };
        let notes = self
            .snapshot
            .health
            .notes
            .iter()
            .map(String::as_str)
            .chain(target)
            .map(Cow::Borrowed);
        notes.chain(
            self.kept()
                .into_iter()
                .chain(self.more_by_stacks())
                .map(Cow::Owned),
        )
    }

    /// Returns a note if stacks stand for more time than threads had in the window, so that the
    /// reader does not look for a mistake. None otherwise, and if no time is counted.
    fn more_by_stacks(&self) -> Option<String> {
        let counts_running = match self.metric_word() {
            "off-cpu" => false,
            "wall" => true,
            _ => return None,
        };
        let waited = self.snapshot.waited.as_ref()?;
        let of_thread = |thread: &ThreadStates| {
            let all: u64 = thread.ns.iter().sum();
            let ran = if counts_running {
                0
            } else {
                thread.ns[WaitState::Run.number()]
            };
            all - ran
        };
        let exact: u64 = waited.threads.iter().map(of_thread).sum();
        more_by_stacks(self.snapshot.report.samples, exact)
    }

    /// Returns how much the filter keeps. None without a filter.
    fn kept(&self) -> Option<String> {
        let filter = &self.snapshot.asked.query.filter;
        if filter.is_empty() {
            return None;
        }
        let (kept, all) = (self.snapshot.report.samples, self.snapshot.offered);
        let metric = self.snapshot.view.as_ref().map(|view| &view.info().metric);
        let all_words = metric::counted_by(metric, all);
        let share = percent(kept, all);
        Some(format!("filter {filter} keeps {share:.1}% of {all_words}"))
    }
}

/// Returns the sentence for stacks that stand for `told_ns` while threads had `exact_ns`. None
/// unless the former is clearly more.
fn more_by_stacks(told_ns: u64, exact_ns: u64) -> Option<String> {
    let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
    (told_ns > exact_ns.saturating_add(exact_ns / MORE_PART)).then(|| {
        format!(
            "stacks stand for {}, and threads had {} by their exact sums: short waits are drawn, and a \
             wait counts when it ends, also for its time before this window",
            ms(told_ns),
            ms(exact_ns)
        )
    })
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_than_threads_had_is_explained() {
        let said = more_by_stacks(4_953_000_000, 3_950_000_000).expect("a sentence");
        assert!(said.starts_with("stacks stand for 4953.0 ms, and threads had 3950.0 ms"));
        assert_eq!(more_by_stacks(3_960_000_000, 3_950_000_000), None);
        assert_eq!(more_by_stacks(0, 0), None);
    }
}
