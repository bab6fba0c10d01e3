//! `report`: prints a recording as text.

mod peek;
mod tree;

use super::apart::{self, Made};
use super::input::Input;
use super::open_file::Opened;
use super::resolve::Places;
use super::trace::report::{self as calls, Manner};
use super::{open_file, recorded};
use crate::batch::BatchReport;
use crate::choices::Format;
use crate::cli::{ReportConfig, ReportShape};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::stderr;
use engine::snapshot::{Recording, Snapshot};
use profile::{Cancel, Query, Selection};

/// Runs `report`: prints the functions, the call tree, or callers and callees of some functions of
/// a recording.
pub fn run(config: &ReportConfig) -> Result<Exit, Failure> {
    let (input, places) = (Input::open(&config.file)?, Places::of_this_machine());
    let width = output::stdout_width();
    let made = apart::make(
        &apart::descriptors([&input], places.descriptors()),
        move || {
            let opened = open_file::open_metric(input, config.metric.as_deref(), &places)?;
            Ok(make(config, &opened, width))
        },
    )?;
    made.print()
}

/// Makes the report, for a terminal of this width.
fn make(config: &ReportConfig, opened: &Opened, width: Option<usize>) -> Made {
    let query = Query {
        window: open_file::last(&opened.view, config.last),
        filter: config.filter.clone(),
        ..Query::default()
    };
    let selection = opened
        .view
        .select(&query, &Cancel::new())
        .expect("nobody cancels it");
    let mut is_found = true;
    let head = || head(opened, &selection, width);
    let text = match &config.shape {
        ReportShape::Functions {
            rows_max,
            format,
            tokens_max,
        } => {
            let has_probes = !opened.view.probes().is_empty();
            let list = || functions(opened, &selection, *rows_max, *format, *tokens_max, width);
            match (format, opened.view.samples()) {
                // There is no list of functions without samples.
                (Format::Text, 0) if has_probes => head() + &probes(opened, *format),
                (Format::Text, _) if has_probes => {
                    let probes = probes(opened, *format);
                    format!("{}\n# what probes counted\n{probes}", list())
                }
                _ => list(),
            }
        }
        ReportShape::Probes(format) => {
            is_found = !opened.view.probes().is_empty();
            probes(opened, *format)
        }
        ReportShape::Tree => head() + &tree::render(&selection),
        ReportShape::Peek(pattern) => {
            let peeked = peek::render(&selection, pattern);
            is_found = peeked.is_some();
            head() + peeked.as_deref().unwrap_or("# no function matches\n")
        }
    };
    let exit = match selection.samples() {
        0 if opened.view.probes().is_empty() => Exit::NoSamples,
        // A pattern that matches nothing ends with the same status as a recording without samples.
        _ if !is_found => Exit::NoSamples,
        _ => Exit::Done,
    };
    Made {
        bytes: text.into_bytes(),
        exit,
        told: Vec::new(),
    }
}

/// Returns the results of probes, as `trace` prints them.
fn probes(opened: &Opened, format: Format) -> String {
    match (opened.view.probes().is_empty(), format) {
        (true, Format::Text) => "# this recording has no probes\n".into(),
        _ => calls::render(&opened.view, Manner::of_recording(&opened.view, format)),
    }
}

/// Returns the functions in the given format, as batch output writes them. The time of the report
/// is the end of its window.
fn functions(
    opened: &Opened,
    selection: &Selection,
    rows_max: Option<usize>,
    format: Format,
    tokens_max: usize,
    width: Option<usize>,
) -> String {
    let snapshot = snapshot(opened, selection);
    let end_ms = snapshot.report.window.end_ns / 1_000_000;
    let report = BatchReport {
        snapshot: &snapshot,
        version: env!("CARGO_PKG_VERSION"),
        time_unix_ms: end_ms.saturating_add_signed(opened.view.info().epoch_unix_ms),
        pids: &[],
        has_other_filters: false,
        top: rows_max,
        width,
        tokens_max,
    };
    for said in report.beside(format) {
        stderr::say(&said);
    }
    report.render(format, true)
}

/// Returns the lines of a report that begin with `#`, which say what the numbers are about.
fn head(opened: &Opened, selection: &Selection, width: Option<usize>) -> String {
    let text = functions(opened, selection, Some(0), Format::Text, 0, width);
    let lines = text.lines().take_while(|line| line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the selected samples as a snapshot, like one of the engine.
fn snapshot(opened: &Opened, selection: &Selection) -> Snapshot {
    let recording = Recording {
        lacks: opened.lacks,
        ..Recording::default()
    };
    recorded::snapshot(&opened.view, &opened.notes, recording, true, selection)
}
