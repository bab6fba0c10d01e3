//! `diff`: what takes more time in a later recording than in an earlier one.

/// What is printed.
mod table;

use super::open_file;
use super::open_file::Opened;
use crate::choices::Operand;
use crate::cli::DiffConfig;
use crate::commands::input;
use crate::commands::live::{self, Live};
use crate::failure::{Exit, Failure};
use crate::stderr;
use profile::diff::{Diff, DiffRow};
use profile::{Cancel, Metric, Query, Selection};
use std::thread;

/// Runs `diff`: prints what changed from A to B. With a limit, the exit status says whether
/// some function exceeds it.
pub fn run(config: &DiffConfig) -> Result<Exit, Failure> {
    let is_stdin =
        |operand: &Operand| matches!(operand, Operand::File(path) if input::is_stdin(path));
    if is_stdin(&config.a) && is_stdin(&config.b) {
        return Err(Failure::usage("only one of the two can be standard input"));
    }
    // Before either is recorded, which takes its time.
    for operand in [&config.a, &config.b] {
        if let Operand::Live(live) = operand {
            live::check(live.pid)?;
        }
    }
    // Both are opened at the same time, because each may have to be recorded first.
    let (a, b) = thread::scope(|scope| {
        let a = scope.spawn(|| open(&config.a));
        let b = open(&config.b);
        (a.join().expect("reading does not panic"), b)
    });
    let (a, b) = (a?, b?);
    for (operand, opened) in [(&config.a, &a), (&config.b, &b)] {
        let name = operand_name(operand);
        let notes = opened.notes.iter();
        notes.for_each(|note| stderr::say(format_args!("{name}: {note}")));
    }
    check_same_metric(&a, &b)?;
    let metric = a.view.info().metric.clone();
    let (a, b) = (select(&a, config), select(&b, config));
    let diff = Diff::new(&a, &b);
    let mut shown = diff.clone();
    // The table shows and tests amounts of time where both sides know it; the limit is one
    // of shares, for which `diff` stays as it is.
    shown.compare_time();
    super::print(&table::render(&shown, &metric, config.rows_max))?;
    if diff.a.samples == 0 || diff.b.samples == 0 {
        return Ok(Exit::NoSamples);
    }
    let Some(limit) = config.fail_over_points else {
        return Ok(Exit::Done);
    };
    match diff.rows.iter().find(|row| exceeds(&diff, row, limit)) {
        None => Ok(Exit::Done),
        Some(row) => {
            let points = points(&diff, row);
            stderr::say(format_args!(
                "{} takes {points:.1} percentage points more of all samples; the limit is {limit}",
                row.name
            ));
            Ok(Exit::Exceeded)
        }
    }
}

/// Returns an error if the sides count different things, as samples on CPUs and nanoseconds
/// of waiting: no difference of theirs means anything.
fn check_same_metric(a: &Opened, b: &Opened) -> Result<(), Failure> {
    let (a, b) = (&a.view.info().metric, &b.view.info().metric);
    if a == b {
        return Ok(());
    }
    let words = |metric: &Metric| format!("{} in {}", metric.name, metric.unit);
    Err(Failure::failed(format!(
        "cannot compare: A counts {}, B counts {}",
        words(a),
        words(b)
    )))
}

/// Returns what a side is called in messages: its file, or the process that is recorded.
fn operand_name(operand: &Operand) -> String {
    match operand {
        Operand::File(path) => input::name(path),
        Operand::Live(live) => format!("pid {}", live.pid),
    }
}

/// Reads a side, or records it first.
fn open(operand: &Operand) -> Result<Opened, Failure> {
    match operand {
        Operand::File(path) => open_file::open(path),
        Operand::Live(live) => Live::start(live.pid, live.duration)?.open(),
    }
}

/// Returns what the filter keeps of a side; both have the same one.
fn select(opened: &Opened, config: &DiffConfig) -> Selection {
    let query = Query {
        filter: config.filter.clone(),
        ..Query::default()
    };
    let selection = opened.view.select(&query, &Cancel::new());
    selection.expect("nobody cancels it")
}

/// Returns by how many percentage points a function's share of all samples has grown.
fn points(diff: &Diff, row: &DiffRow) -> f64 {
    diff.b.share(row.b_self) - diff.a.share(row.a_self)
}

/// Whether a function's share has grown by more than the limit. Changes that could be
/// chance do not count, so that they fail no build.
fn exceeds(diff: &Diff, row: &DiffRow, limit: f64) -> bool {
    row.sure && points(diff, row) > limit
}
