//! A number *explained*: what was counted, and out of what.

use super::header;
use crate::app::App;
use crate::knobs::Window;
use crate::view_id::ViewId;
use crate::views::functions::FunctionColumn;
use crate::views::health::findings;
use crate::views::{code, flame, page, time, tree};
use crate::words::units;
use profile::FunctionRow;

/// One sentence on the selected row's number in the sorted column.
pub fn sentence(app: &App) -> String {
    if let Some(diff) = app.difference_here() {
        return crate::views::functions::difference::draw::explain(app, diff);
    }
    let text = match app.focus() {
        ViewId::Functions => function(app),
        ViewId::Tree => tree::draw::explain(app),
        ViewId::Flame => flame::words::explain(app),
        ViewId::Page => page::words::explain(app),
        ViewId::Code => code::words::explain(app),
        ViewId::Time => time::words::explain(app),
        ViewId::Processes => process(app),
        ViewId::Threads => thread(app),
        ViewId::Health => findings(&app.shown)
            .into_iter()
            .nth(app.views.health.index())
            .map(|finding| finding.explain),
    };
    text.unwrap_or_else(|| "nothing is selected".into())
}

fn function(app: &App) -> Option<String> {
    let functions = &app.views.functions;
    let row = functions.selected(&app.shown.report)?.row;
    Some(of_function(app, row, functions.column()))
}

/// On a function's number in a column.
pub fn of_function(app: &App, row: &FunctionRow, column: FunctionColumn) -> String {
    let base = app.shown.report.samples;
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
        units::share(&app.shown.report, samples, base),
        units::counted(samples, "sample"),
        row.name,
        units::counted(base, "sample"),
        base_words(app),
        units::band_text(&app.shown.report, samples, base)
    )
}

fn process(app: &App) -> Option<String> {
    let row = app.views.processes.selected(&app.shown.report)?.row;
    Some(cpus(
        app,
        row.samples,
        &format!("{}[{}]", row.comm, row.pid),
    ))
}

fn thread(app: &App) -> Option<String> {
    let threads = app.views.threads_in(app.in_pane());
    let row = threads.selected(&app.shown.report)?.row;
    Some(cpus(
        app,
        row.samples,
        &format!("{}[{}]", row.comm, row.tid),
    ))
}

/// On the number of a process or thread.
pub fn cpus(app: &App, samples: u64, who: &str) -> String {
    let seconds = app.shown.report.window.seconds();
    let rate = app.shown.report.rate_hz;
    let cpus = units::cpus(samples, rate, seconds).unwrap_or(0.0);
    format!(
        "{cpus:.2} CPU = {} of {who} / ({rate} per second and CPU x {seconds:.1} s)",
        units::counted(samples, "sample")
    )
}

fn base_words(app: &App) -> String {
    let seconds = app.shown.report.window.seconds();
    let time = match app.knobs.window {
        Window::Last(_) => "last",
        Window::Since { .. } => "since the mark,",
        Window::Between { .. } => "marked",
    };
    let rates = match app.shown.report.reweighed {
        Some(told) if header::metric_told(app).is_some() => format!(
            " ({} taken, each for as many as there had been since the one before)",
            units::counted(told.taken, "sample")
        ),
        Some(told) => format!(
            " (the rate changed: {} taken, counted as if all were at {} Hz)",
            units::count(told.taken),
            app.shown.report.rate_hz
        ),
        None => String::new(),
    };
    format!("{}, {time} {seconds:.1} s{rates}", app.scope_words())
}
