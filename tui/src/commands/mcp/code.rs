//! `code`: returns the source lines and instructions of a function that have most samples.

use super::arguments::Arguments;
use super::drill;
use super::kept::Kept;
use super::samples::Lot;
use crate::code::Syntax;
use crate::desk::Desk;
use crate::views::code::{CodeAnswer, CodeRow, CodeWanted, Layout, code_rows, words};
use crate::words::markdown::{self, Lines, code, quoted};
use crate::words::{metric, names};
use profile::Cancel;

/// Maximum number of rows: those with most samples, in the order of the code.
const ROWS_MAX: usize = 40;

/// Returns the hottest lines and instructions of a function.
pub fn answer(
    arguments: &Arguments,
    kept: &mut Kept,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    let lot = kept
        .samples
        .find_or_newest(arguments.text("samples")?)?
        .narrowed(arguments.filter()?, cancel)?;
    let selection = lot.select(lot.snapshot.asked.query.filter.clone(), cancel)?;
    let found = drill::find(&selection, arguments.needed("function")?)?;
    let wanted = CodeWanted {
        function: found.row.id,
        is_recorded: lot.snapshot.source.recording.is_some(),
        // Other samples must not get the code that was read for earlier ones.
        visit: lot.snapshot.generation,
    };
    let ask = Desk::<_, CodeAnswer>::default()
        .ask(&lot.snapshot, wanted)
        .ok_or("it has no samples")?;
    let answer = CodeAnswer::new(ask, &mut kept.library, cancel).ok_or("cancelled")?;
    Ok(render(&lot, &answer, &found.others, tokens_max))
}

fn render(lot: &Lot, found: &CodeAnswer, others: &[String], tokens_max: usize) -> String {
    let mut lines = Lines::new(markdown::bytes(tokens_max));
    let all = found.samples();
    let own = metric::counted_by(found.metric(), found.code.self_samples);
    let inlined = match found.code.inlined_samples {
        0 => String::new(),
        samples => {
            let inlined = metric::bare_amount_by(found.metric(), samples);
            format!(" and {inlined} where it is inlined")
        }
    };
    let module = quoted(names::module(&found.function.module));
    lines.push(&format!(
        "# Code of {} ({module}) in {}: {own} of its own{inlined}",
        code(&found.function.name),
        quoted(&lot.name),
    ));
    if let Some(file) = &found.body.file {
        lines.push(&format!("Source: {}", quoted(file)));
    }
    if !others.is_empty() {
        lines.push(&format!("The name also fits: {}", others.join(", ")));
    }
    let missing = [&found.body.no_text, &found.body.no_assembly];
    for note in missing.into_iter().flatten().chain(&found.body.notes) {
        // Notes contain names of files, which may have any characters.
        lines.push(&format!("Note: {}", quoted(note)));
    }
    let rows = code_rows(found, Layout::Both);
    let least = words::least(&rows, ROWS_MAX);
    let shown = rows.iter().filter(|row| row.samples() >= least);
    if !lines.head("Lines and instructions with most samples, in the order of the code") {
        return lines.into_text();
    }
    for row in shown.take(ROWS_MAX) {
        lines.push(&line(lot, found, row, all));
    }
    if all == 0 {
        lines.push("No sample hit its own code: its time is in what it calls.");
    }
    lines.into_text()
}

/// Returns a row: its share, its place, and its text.
fn line(lot: &Lot, found: &CodeAnswer, row: &CodeRow, all: u64) -> String {
    let text = words::row(found, row, Syntax::default())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let indent = if row.is_part() { "  " } else { "" };
    let place = words::short_place(found, row);
    let space = if place.is_empty() { "" } else { " " };
    let share = lot.share(row.samples(), all);
    format!("{indent}- {share} {place}{space}{}", quoted(&text))
}
