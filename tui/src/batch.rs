//! *Batch output*: one report as text, for a terminal's paper trail, a ticket
//! or another program. Data in, a string out; nothing is read, written or
//! decided here.
//!
//! - [`text`]: two header lines and a table, for people
//! - [`csv`]: one line per function, for spreadsheets
//! - [`json`]: one object per report and line, for programs
//! - [`markdown`]: the answer in a few lines, for programs that read language
//! - [`plain`]: no control character gets through
//!
//! `docs/batch-json.md` is the contract on CSV and JSON.

mod csv;
mod json;
mod markdown;
mod plain;
mod text;

use crate::choices::Format;
use engine::snapshot::{Snapshot, TargetState};
use profile::FunctionRow;

/// One report, and what it is to be called.
#[derive(Debug, Clone, Copy)]
pub struct BatchReport<'a> {
    pub snapshot: &'a Snapshot,
    /// proftop's own version.
    pub version: &'a str,
    /// The end of the window on the wall clock.
    pub time_unix_ms: u64,
    /// The processes that were asked for; none is the whole machine.
    pub pids: &'a [u32],
    /// How many functions to show; without it, all.
    pub top: Option<usize>,
    /// Text only: cut names so that lines are no longer than that.
    pub width: Option<usize>,
    /// Markdown only: how long it may be.
    pub tokens_max: usize,
}

impl BatchReport<'_> {
    /// The whole report, its last line ended. `is_first` says whether it opens
    /// the output: CSV has its header line once.
    pub fn render(&self, format: Format, is_first: bool) -> String {
        match format {
            Format::Text => text::render(self),
            Format::Csv if is_first => csv::header() + &csv::rows(self),
            Format::Csv => csv::rows(self),
            Format::Json => json::render(self),
            Format::Md => markdown::render(self),
        }
    }

    /// The functions to show, and those left over.
    fn split(&self) -> (&[FunctionRow], &[FunctionRow]) {
        let functions = &self.snapshot.report.functions;
        let shown = self.top.unwrap_or(functions.len()).min(functions.len());
        functions.split_at(shown)
    }

    /// Everything the reader should know beside the numbers.
    fn notes(&self) -> impl Iterator<Item = &str> {
        let target = match &self.snapshot.run.target {
            TargetState::Starting | TargetState::Running | TargetState::Recorded => None,
            TargetState::Exited(how) | TargetState::Failed(how) => Some(how.as_str()),
        };
        let notes = self.snapshot.health.notes.iter().map(String::as_str);
        notes.chain(target)
    }
}

#[cfg(test)]
mod fixture;
