//! The texts about the selected function: its numbers explained.

use super::FunctionColumn;
use crate::action::Action;
use crate::context::Context;
use crate::words::explain::base_words;
use crate::words::keys::key;
use crate::words::{metric, names, skid, units, waits};
use profile::FunctionRow;

/// Explains the row of a function that has no samples any more: its numbers are those of an earlier
/// window, and not part of the present counts.
pub fn of_gone(cx: &Context<'_>, row: &FunctionRow) -> String {
    let why = if cx.knobs.filter.is_empty() {
        "no samples in"
    } else {
        "no samples that the filter keeps in"
    };
    format!(
        "{} has {why} {}; when it was last seen it had {} on top of the stack and {} anywhere \
         on it",
        names::brief(&row.name),
        base_words(cx),
        metric::counted(cx, row.self_samples),
        metric::bare_amount(cx, row.total_samples),
    )
}

/// Explains a function's number in a column.
pub fn of_function(cx: &Context<'_>, row: &FunctionRow, column: FunctionColumn) -> String {
    let base = cx.shown.report.samples;
    if column != FunctionColumn::TotalSamples && skid::is_likely(row) {
        let samples = units::counted(row.self_samples, "sample");
        return skid::explain(&samples, &row.name, key(cx, Action::Page).as_deref());
    }
    let (samples, where_, recursion) = match column {
        FunctionColumn::TotalSamples => (
            row.total_samples,
            "anywhere on the stack",
            "; recursion counted once",
        ),
        _ => (row.self_samples, "on top of the stack", ""),
    };
    let beside = units::Scale::new(cx, base)
        .beside(samples)
        .map_or_else(String::new, |number| format!("{number}; "));
    let number = format!(
        "{beside}{}% = {} with {} {where_} / {} in {}{recursion}",
        units::share(&cx.shown.report, samples, base),
        metric::counted(cx, samples),
        names::brief(&row.name),
        metric::counted(cx, base),
        base_words(cx),
    );
    match &row.waits {
        Some(waits) => {
            let rule = waits::rule(row).map_or_else(String::new, |rule| format!("; {rule}"));
            format!("{number}{rule}; {}", waits::explain(waits))
        }
        None => {
            let band = units::band_text(&cx.shown.report, samples, base);
            format!("{number}; 95% band {band} pp")
        }
    }
}
