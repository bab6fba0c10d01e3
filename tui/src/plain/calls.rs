//! The commands about callers and callees of a function.

use super::answer::{Answer, Target, Trouble};
use super::dialog::Dialog;
use crate::views::page::{PageAnswer, SECONDS, words};
use crate::words::{metric, names, source, units, waits};
use profile::query::{FunctionPage, Neighbour, NeighbourKind};
use profile::{Metric, Report};

/// Maximum number of callers that are listed, and of callees.
const ROWS: usize = 12;
/// Maximum number of frames of the heaviest stack that are listed: those nearest to the leaf.
const FRAMES: usize = 40;

/// Runs `callers`: lists the callers of a function, heaviest first.
pub fn callers(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    about(dialog, words, |asked, found, answer| {
        title(asked, found, "callers of", answer);
        neighbours(asked, found, &found.callers, true, answer);
    })
}

/// Runs `callees`: lists the callees of a function, heaviest first.
pub fn callees(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    about(dialog, words, |asked, found, answer| {
        title(asked, found, "callees of", answer);
        neighbours(asked, found, &found.callees, false, answer);
    })
}

/// Runs `page`: prints a function's callers and callees, the stack that most of its samples have,
/// and its samples over the last minute.
pub fn page(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    about(dialog, words, |asked, found, answer| {
        title(asked, found, "", answer);
        answer.say("callers, of its total:");
        neighbours(asked, found, &found.callers, true, answer);
        answer.say("callees, of its total:");
        neighbours(asked, found, &found.callees, false, answer);
        heaviest(asked, found, answer);
        trend(asked, answer);
    })
}

/// The answer about a function, the report that its percentages refer to, and the metric, which is
/// None for time on CPUs.
type Asked<'a> = (&'a PageAnswer, &'a Report, Option<&'a Metric>);

/// Looks up the function that `words` name and lets `tell` write about it. A function without
/// samples in the current selection gets a sentence that says so.
fn about(
    dialog: &mut Dialog,
    words: &str,
    tell: impl FnOnce(Asked<'_>, &FunctionPage, &mut Answer),
) -> Result<Answer, Trouble> {
    let function = dialog.function(words)?;
    let page = dialog.session.page(function)?;
    let mut answer = Answer::default();
    match &page.page {
        Some(found) => {
            let cx = &dialog.session.app.context();
            let asked = (&page, &*cx.shown.report, metric::metric_told(cx));
            tell(asked, found, &mut answer);
        }
        None => {
            let name = &page.function.name;
            answer.say(format!("{name} has no samples in what is counted"));
        }
    }
    Ok(answer)
}

/// Writes the line about the function itself: its samples, and its place in the source.
fn title((page, report, metric): Asked<'_>, found: &FunctionPage, of: &str, answer: &mut Answer) {
    let function = &found.function;
    let percent = |samples| units::share(report, samples, page.samples);
    let mut line = format!(
        "{of} {}: {}% total = {}, {}% self  {}",
        names::short(&function.name),
        percent(function.total_samples),
        metric::counted_by(metric, function.total_samples),
        percent(function.self_samples),
        names::module(&function.module)
    );
    if let Some(place) = source::source(function.file.as_deref(), function.line) {
        line += &format!("  {place}");
    }
    if let Some(waits) = &function.waits {
        line += &format!("  {}", waits::brief(waits));
    }
    answer.say(line.trim_start());
}

/// Writes a row for each caller or callee, and one for the sum of the others. Commands can refer to
/// rows of functions by their number.
fn neighbours(
    asked: Asked<'_>,
    found: &FunctionPage,
    rows: &[Neighbour],
    is_caller: bool,
    answer: &mut Answer,
) {
    let (page, report, metric) = asked;
    let all = found.function.total_samples;
    for row in rows.iter().take(ROWS) {
        let function = match row.kind {
            NeighbourKind::Function(id) => page.functions.get(&id),
            _ => None,
        };
        let name = words::neighbour_of(row.kind, function);
        let share = units::share(report, row.samples, all);
        let samples = metric::bare_amount_by(metric, row.samples);
        let module = function.map_or("", |function| names::module(&function.module));
        let text = format!("{share}% = {samples}  {}  {module}", names::short(&name));
        let text = text.trim_end();
        match function {
            Some(function) => {
                let target = Target::Function(function.id);
                answer.row(target, text, why(asked, found, row, &name, is_caller));
            }
            None => answer.row(
                Target::Words,
                text,
                why(asked, found, row, &name, is_caller),
            ),
        }
    }
    let rest = rows.get(ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let samples = rest.iter().map(|row| row.samples).sum();
        let share = units::share(report, samples, all);
        let count = rest.len();
        answer.bare_row(&format!(
            "{share}% = {} in {count} more",
            metric::bare_amount_by(metric, samples)
        ));
    }
}

/// Returns the sentence that explains the number in a row.
fn why(
    (_, report, metric): Asked<'_>,
    found: &FunctionPage,
    row: &Neighbour,
    other: &str,
    is_caller: bool,
) -> String {
    let all = found.function.total_samples;
    let of = words::share_of(
        &units::share(report, row.samples, all),
        &metric::bare_amount_by(metric, row.samples),
        &metric::counted_by(metric, all),
        &found.function.name,
    );
    words::explain_neighbour(&of, row.kind, other, is_caller)
}

/// Writes the stack that most samples of the function have, callers first.
fn heaviest((page, report, _): Asked<'_>, found: &FunctionPage, answer: &mut Answer) {
    let all = found.function.total_samples;
    answer.say(format!(
        "heaviest stack, callers first: {}% of it",
        units::share(report, found.heaviest_samples, all)
    ));
    let skipped = found.heaviest.len().saturating_sub(FRAMES);
    if skipped > 0 {
        answer.bare_row(&format!(
            "{} above",
            units::counted(skipped as u64, "frame")
        ));
    }
    for id in &found.heaviest[skipped..] {
        if let Some(function) = page.functions.get(id) {
            let (name, module) = (&function.name, &function.module);
            let text = format!("{}  {}", names::short(name), names::module(module));
            let why = "a frame of the stack that most of its samples have";
            answer.row(Target::Function(*id), &text, why);
        }
    }
}

/// Writes the last minute in steps of ten seconds: a curve that can be read aloud.
fn trend((page, _, metric): Asked<'_>, answer: &mut Answer) {
    let tens: Vec<String> = page
        .seconds
        .chunks(10)
        .map(|ten| metric::bare_amount_by(metric, ten.iter().sum()))
        .collect();
    let what = match metric {
        None => "samples with it",
        Some(_) => "what is counted with it",
    };
    answer.say(format!(
        "{what} in the last {SECONDS} s, by 10 s, newest last: {}",
        tens.join(" ")
    ));
}
