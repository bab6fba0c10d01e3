//! The line on the selected function, and its number explained.

use super::FunctionColumn;
use crate::context::Context;
use crate::words::explain::base_words;
use crate::words::units;
use profile::FunctionRow;

/// On a function's number in a column.
pub fn of_function(cx: &Context<'_>, row: &FunctionRow, column: FunctionColumn) -> String {
    let base = cx.shown.report.samples;
    let (samples, where_, recursion) = match column {
        FunctionColumn::TotalSamples => (
            row.total_samples,
            "anywhere on the stack",
            "; recursion counted once",
        ),
        _ => (row.self_samples, "on top of the stack", ""),
    };
    format!(
        "{}% = {} with {} {where_} / {} in {}{recursion}; 95% band {} pp",
        units::share(&cx.shown.report, samples, base),
        units::counted(samples, "sample"),
        row.name,
        units::counted(base, "sample"),
        base_words(cx),
        units::band_text(&cx.shown.report, samples, base)
    )
}
