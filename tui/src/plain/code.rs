//! The commands about the code of a function: its lines and instructions with samples.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, sentence};
use crate::order::Order;
use crate::values;
use crate::views::code::{CodeAnswer, CodeRow, Layout, code_rows, words};
use crate::words::{metric, names, units};
use profile::Report;

/// Number of rows that are listed: those with most samples, in the order of the code.
const ROWS: usize = 20;
/// Maximum number of rows of `code … all`.
const ROWS_MAX: usize = 2_000;

/// Runs `asm`: sets the syntax of instructions. Without an argument, prints the present one.
pub fn syntax(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        let code = &dialog.session.app.views.code;
        return sentence(format!("code is in {} syntax", code.syntax().name()));
    }
    let syntax = values::word(words).map_err(Trouble::Usage)?;
    dialog.session.order(Order::Syntax(syntax))?;
    sentence(format!("code is in {} syntax from now on", syntax.name()))
}

/// Runs `code`: lists the lines and instructions of a function that have most samples, in the order
/// of the code. With `all`, lists every row.
pub fn code(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let (words, is_all) = match words.strip_suffix("all") {
        Some(rest) if rest.is_empty() || rest.ends_with(' ') => (rest.trim_end(), true),
        _ => (words, false),
    };
    let function = dialog.function(words)?;
    let syntax = dialog.session.app.views.code.syntax();
    let found = dialog.session.code(function)?;
    let mut answer = Answer::default();
    title(&found, &mut answer);
    for note in &found.body.notes {
        answer.say(note.as_str());
    }
    let report = &dialog.session.app.shown.report;
    let rows = code_rows(&found, Layout::Both);
    if rows.is_empty() {
        answer.say("no sample hit its own code");
        return Ok(answer);
    }
    let least = if is_all { 0 } else { words::least(&rows, ROWS) };
    let rows_max = if is_all { ROWS_MAX } else { ROWS };
    let all = found.samples();
    let is_listed = |row: &&CodeRow| is_all || row.samples() >= least;
    for row in rows.iter().filter(is_listed).take(rows_max) {
        let place = words::short_place(&found, row);
        let code = words::row(&found, row, syntax);
        let code = code.trim();
        match row.samples() {
            0 => answer.bare_row(format!("{place}  {code}").trim_end()),
            samples => {
                let share = units::share(report, samples, all);
                let part = if row.is_part() { "of its line " } else { "" };
                let samples = metric::bare_amount_by(found.metric(), samples);
                let text = format!("{part}{share}% = {samples}  {place}  {code}");
                answer.row(Target::Words, text.trim_end(), why(&found, row, report));
            }
        }
    }
    if !is_all {
        answer.say("rows with most samples; code ROW all: every row");
    }
    Ok(answer)
}

/// Writes the function's name, the samples that hit its code, and what is missing from it.
fn title(found: &CodeAnswer, answer: &mut Answer) {
    let source = match (&found.body.file, &found.body.text) {
        (Some(file), Some(text)) => format!("{file}, source: {}", text.origin),
        (Some(file), None) => format!("{file}, no source"),
        (None, _) => "no source".into(),
    };
    let own = metric::bare_amount_by(found.metric(), found.code.self_samples);
    let inlined = match found.code.inlined_samples {
        0 => String::new(),
        samples => {
            let inlined = metric::bare_amount_by(found.metric(), samples);
            format!(" and {inlined} inlined")
        }
    };
    let instructions = units::counted(found.body.instructions() as u64, "instruction");
    let name = names::short(&found.function.name);
    answer.say(format!(
        "code of {name}: {own} self{inlined}, {instructions}, {source}"
    ));
    let body = &found.body;
    for missing in [&body.no_text, &body.no_assembly].into_iter().flatten() {
        answer.say(missing.as_str());
    }
}

/// Returns the sentence that explains the number in a row, with its heaviest callees.
fn why(found: &CodeAnswer, row: &CodeRow, report: &Report) -> String {
    let mut text = words::number(found, row, report);
    if let Some(spot) = found.spot(row) {
        for (callee, samples) in spot.calls.iter().take(5) {
            let callee = words::name(found, *callee);
            text += &format!(
                "; calls {callee}, {}",
                metric::counted_by(found.metric(), *samples)
            );
        }
    }
    text
}
