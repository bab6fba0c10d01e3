//! A difference as a table. If both sides know time, it shows by how many milliseconds per second
//! each function changed, and tests that; else the change of its share of all samples.

use super::Compared;
use crate::words::{compared, metric, names, text};
use profile::Metric;
use profile::diff::{Diff, DiffRow, Side};
use std::fmt::Write as _;

/// Returns the table: a head about the sides, at most `rows_max` functions, and a sum of the
/// others.
pub fn render(compared: &Compared<'_>) -> String {
    let mut out = String::new();
    write(compared, &mut out).expect("a string takes everything");
    out
}

/// Writes the table. Rows are in the order of the difference: functions that surely grew are first.
fn write(compared: &Compared<'_>, out: &mut String) -> std::fmt::Result {
    let (diff, metric) = (compared.diff, compared.metric);
    if *metric != Metric::default() {
        writeln!(out, "# counted: {}", text::clean(&metric.name))?;
    }
    writeln!(out, "# A {}", compared.side(&diff.a))?;
    writeln!(out, "# B {}", compared.side(&diff.b))?;
    writeln!(
        out,
        "# the same by build-id {}, by module and name {}; ~ could be chance",
        diff.same_by_build_id, diff.same_by_module
    )?;
    for renamed in &diff.renamed {
        writeln!(out, "# {}", compared::renamed(renamed))?;
    }
    // Two columns for the tested numbers, then two for the other numbers that both sides know.
    let own = metric::column_head(metric);
    let (own_a, own_b) = (format!("A-{own}"), format!("B-{own}"));
    let heads = if diff.tests_time() {
        ["DELTA-MS/S", "A-MS/S", "B-MS/S", "A-SELF%", "B-SELF%"]
    } else {
        ["POINTS", "A-SELF%", "B-SELF%", &own_a, &own_b]
    };
    let [change, a, b, other_a, other_b] = heads;
    writeln!(
        out,
        "  {change:>10}  {a:>8}  {b:>8}  {other_a:>8}  {other_b:>8}  SURE  FUNCTION  MODULE"
    )?;
    let shown = diff.rows.len().min(compared.rows_max);
    for row in &diff.rows[..shown] {
        write_row(diff, metric, row, out)?;
    }
    let rest = &diff.rows[shown..];
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|row| change_of(diff, row)).sum();
        writeln!(out, "  {sum:+10.1}  {} more", rest.len())?;
    }
    for sentence in compared.beside() {
        writeln!(out, "# {sentence}")?;
    }
    if let Some([a, b]) = compared.all() {
        writeln!(out, "# all {a:.1} -> {b:.1} ms of CPU per second")?;
    }
    Ok(())
}

/// Returns by how much a function changed from A to B, in the tested unit.
fn change_of(diff: &Diff, row: &DiffRow) -> f64 {
    diff.sides().change(row.a_self, row.b_self)
}

/// Writes the row of one function. A change that may be chance is marked by `~`.
fn write_row(diff: &Diff, metric: &Metric, row: &DiffRow, out: &mut String) -> std::fmt::Result {
    let sides = diff.sides();
    let change = change_of(diff, row);
    let sign = match change {
        c if c > 0.0 => '▲',
        c if c < 0.0 => '▼',
        _ => ' ',
    };
    let sure = if row.sure { "yes" } else { "~" };
    let mark = match (row.is_new(), row.is_gone()) {
        (true, _) => "  (new in B)",
        (_, true) => "  (gone in B)",
        _ => "",
    };
    let other = |side: &Side, count: u64| {
        if diff.tests_time() {
            format!("{:.1}", side.share(count))
        } else {
            metric::in_column(metric, count)
        }
    };
    writeln!(
        out,
        "{sign} {change:+10.1}  {:8.1}  {:8.1}  {:>8}  {:>8}  {sure:<4}  {}  {}{mark}",
        sides.amount(&diff.a, row.a_self),
        sides.amount(&diff.b, row.b_self),
        other(&diff.a, row.a_self),
        other(&diff.b, row.b_self),
        names::short(&row.name),
        names::module(&row.module),
    )
}
