//! Prints functions with their callers above them and their callees below them.

use crate::words::metric::in_column;
use crate::words::{names, waits};
use profile::query::{FunctionPage, Neighbour, NeighbourKind};
use profile::{Cancel, Selection, View, percent};
use regex::Regex;
use std::fmt::Write as _;

/// Maximum number of functions that are printed, because the pattern may match all.
const FUNCTIONS_MAX: usize = 50;
/// Maximum number of callers that are printed of each function, and of callees.
const NEIGHBOURS_MAX: usize = 20;

/// Returns callers and callees of each function whose name matches the pattern. None if none
/// matches.
pub fn render(selection: &Selection, pattern: &Regex) -> Option<String> {
    let functions = selection.functions();
    let matching = functions.iter().filter(|row| pattern.is_match(&row.name));
    let mut out = String::new();
    let mut found = 0;
    for row in matching {
        found += 1;
        if found > FUNCTIONS_MAX {
            continue;
        }
        let page = selection.page(row.id, &Cancel::new());
        if let Some(page) = page.expect("nobody cancels it") {
            write(&mut out, selection, &page).expect("a string takes everything");
        }
    }
    match found {
        0 => None,
        _ if found > FUNCTIONS_MAX => {
            Some(out + &format!("# {} more functions match\n", found - FUNCTIONS_MAX))
        }
        _ => Some(out),
    }
}

/// Writes callers, the function itself, and callees, with a rule before them. Shares of neighbours
/// are relative to the samples that have the function on the stack; its own share is relative to
/// all samples.
fn write(out: &mut String, selection: &Selection, page: &FunctionPage) -> std::fmt::Result {
    let view = selection.view();
    let row = &page.function;
    let all = row.total_samples;
    writeln!(
        out,
        "----------------------------------------------------------"
    )?;
    neighbours(out, view, &page.callers, all, "caller")?;
    let (own, total) = (row.self_samples, row.total_samples);
    let share = percent(total, selection.samples());
    let (name, module) = (names::short(&row.name), names::module(&row.module));
    let [own, total] = [own, total].map(|amount| in_column(&view.info().metric, amount));
    write!(out, "{share:5.1}% {total:>6}  {name}  {module}")?;
    write!(out, "   self {own}")?;
    if let Some(waits) = &row.waits {
        write!(out, "   {}", waits::brief(waits))?;
    }
    if let Some(file) = &row.file {
        write!(out, "   {file}:{}", row.line)?;
    }
    writeln!(out)?;
    neighbours(out, view, &page.callees, all, "callee")
}

/// Writes a line for each caller or callee, those with most samples first, and a line for the sum
/// of the others. `what` is the word for them.
fn neighbours(
    out: &mut String,
    view: &View,
    rows: &[Neighbour],
    all: u64,
    what: &str,
) -> std::fmt::Result {
    let metric = &view.info().metric;
    let shown = rows.len().min(NEIGHBOURS_MAX);
    for row in &rows[..shown] {
        let name = match row.kind {
            NeighbourKind::Function(id) => names::short(&view.function(id).name).into_owned(),
            NeighbourKind::Root => "(no caller: the thread begins here)".into(),
            NeighbourKind::Stopped(ending) => names::stopped(ending),
            NeighbourKind::Own => "(self)".into(),
        };
        let share = percent(row.samples, all);
        let amount = in_column(metric, row.samples);
        writeln!(out, "      {share:5.1}% {amount:>6}  | {what} {name}")?;
    }
    let rest: u64 = rows[shown..].iter().map(|row| row.samples).sum();
    if rest > 0 {
        let share = percent(rest, all);
        let count = rows.len() - shown;
        let amount = in_column(metric, rest);
        writeln!(out, "      {share:5.1}% {amount:>6}  | {count} more")?;
    }
    Ok(())
}
