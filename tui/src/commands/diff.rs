//! `diff`: what takes more time in a later recording than in an earlier one.

mod live;

use super::open_file;
use super::open_file::Opened;
use crate::choices::Operand;
use crate::cli::DiffConfig;
use crate::commands::input;
use crate::failure::{Exit, Failure};
use live::Live;
use profile::diff::{Diff, DiffRow, Side};
use profile::{Cancel, Query, Selection};
use std::fmt::Write as _;
use std::thread;

pub fn run(config: &DiffConfig) -> Result<Exit, Failure> {
    let is_stdin =
        |operand: &Operand| matches!(operand, Operand::File(path) if input::is_stdin(path));
    if is_stdin(&config.a) && is_stdin(&config.b) {
        return Err(Failure::usage("only one of the two can be standard input"));
    }
    // At the same time: both may be recorded now.
    let (a, b) = thread::scope(|scope| {
        let a = scope.spawn(|| open(&config.a));
        let b = open(&config.b);
        (a.join().expect("reading does not panic"), b)
    });
    let (a, b) = (a?, b?);
    for note in a.notes.iter().chain(&b.notes) {
        eprintln!("proftop: {note}");
    }
    let (a, b) = (select(&a, config), select(&b, config));
    let diff = Diff::new(&a, &b);
    super::print(&render(&diff, config.rows_max))?;
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
            eprintln!(
                "proftop: {} takes {points:.1} points more of all samples, over {limit}",
                row.name
            );
            Ok(Exit::Exceeded)
        }
    }
}

fn open(operand: &Operand) -> Result<Opened, Failure> {
    match operand {
        Operand::File(path) => open_file::open(path),
        Operand::Live(live) => Live::start(live)?.open(),
    }
}

fn select(opened: &Opened, config: &DiffConfig) -> Selection {
    let query = Query {
        filter: config.filter.clone(),
        ..Query::default()
    };
    let selection = opened.view.select(&query, &Cancel::new());
    selection.expect("nobody cancels it")
}

fn points(diff: &Diff, row: &DiffRow) -> f64 {
    diff.b.share(row.b_self) - diff.a.share(row.a_self)
}

/// Chance fails nobody's build.
fn exceeds(diff: &Diff, row: &DiffRow, limit: f64) -> bool {
    row.sure && points(diff, row) > limit
}

fn render(diff: &Diff, rows_max: usize) -> String {
    let mut out = String::new();
    write(diff, rows_max, &mut out).expect("a string takes everything");
    out
}

fn write(diff: &Diff, rows_max: usize, out: &mut String) -> std::fmt::Result {
    let side = |side: &Side| {
        format!(
            "{} samples, {:.1} s at {} Hz",
            side.samples, side.seconds, side.rate_hz
        )
    };
    writeln!(out, "# A {}", side(&diff.a))?;
    writeln!(out, "# B {}", side(&diff.b))?;
    writeln!(
        out,
        "# the same by build-id {}, by module and name {}; ~ could be chance",
        diff.same_by_build_id, diff.same_by_module
    )?;
    let samples = |samples| Some(samples as f64);
    let total = (
        diff.a.cpu_ms_per_s(diff.a.samples),
        diff.b.cpu_ms_per_s(diff.b.samples),
    );
    let (unit, known) = match total {
        (Some(_), Some(_)) => ("ms/s", true),
        _ => ("smp", false),
    };
    let value = |side: &Side, count| match known {
        true => side.cpu_ms_per_s(count),
        false => samples(count),
    };
    writeln!(
        out,
        "  POINTS  A-SELF%  B-SELF%    A-{unit}    B-{unit}  SURE  FUNCTION  MODULE"
    )?;
    let shown = diff.rows.len().min(rows_max);
    for row in &diff.rows[..shown] {
        let points = points(diff, row);
        let sign = match points {
            p if p > 0.0 => '▲',
            p if p < 0.0 => '▼',
            _ => ' ',
        };
        let sure = if row.sure { "yes" } else { "~" };
        let mark = match (row.is_new(), row.is_gone()) {
            (true, _) => "  (new in B)",
            (_, true) => "  (gone in B)",
            _ => "",
        };
        writeln!(
            out,
            "{sign} {points:+6.1}  {:7.1}  {:7.1}  {:8.1}  {:8.1}  {sure:<4}  {}  {}{mark}",
            diff.a.share(row.a_self),
            diff.b.share(row.b_self),
            value(&diff.a, row.a_self).unwrap_or(0.0),
            value(&diff.b, row.b_self).unwrap_or(0.0),
            row.name,
            row.module,
        )?;
    }
    let rest = &diff.rows[shown..];
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|row| points(diff, row)).sum();
        writeln!(out, "  {sum:+6.1}  {} more", rest.len())?;
    }
    if let (Some(a), Some(b)) = total {
        writeln!(out, "# all {a:.1} -> {b:.1} ms of CPU per second")?;
    }
    Ok(())
}
