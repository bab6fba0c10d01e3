//! The detail line: the selected row in full, a number explained, or what the
//! last key did.

use super::keys::{and, hint, hints, key};
use super::{explain, footer};
use crate::action::Action;
use crate::app::mode::{Detail, Notice};
use crate::app::{App, DrawCost};
use crate::geometry::Geometry;
use crate::view_id::ViewId;
use crate::views::functions::difference;
use crate::views::health::{findings, why_unnamed};
use crate::views::{code, flame, functions, page, processes, time, tree};
use crate::widgets::theme::Theme;
use crate::words::{text, units};
use profile::{FunctionRow, ProcessRow, RowName, ThreadRow};
use ratatui::Frame;
use ratatui::style::Style;
use std::time::Duration;

const GONE: &str = "gone from the window; it was: ";

/// Of the frame before this one.
fn cost_of(cost: DrawCost) -> String {
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    format!(
        "frame {}: drawn in {}, {} bytes, written in {}",
        units::count(cost.frames),
        ms(cost.drawn_in),
        units::count(cost.bytes as u64),
        ms(cost.written_in),
    )
}

pub fn render(app: &App, geometry: Geometry, theme: &Theme, frame: &mut Frame) {
    let width = usize::from(geometry.width);
    // Each of the two bands of a row takes a cell more in ASCII.
    let room = if theme.is_ascii() { width - 2 } else { width };
    let text = match &app.detail {
        Detail::Row => match app.draw_cost {
            Some(cost) => cost_of(cost),
            None => row(app, theme, room),
        },
        Detail::Explain => explain::sentence(app),
        Detail::Notice(notice) => say(app, notice),
    };
    let text = if theme.is_ascii() {
        text.replace('±', "+-")
    } else {
        text
    };
    // A sentence that is too long takes the key line too; the next key brings
    // that back.
    let lines = match (&app.detail, geometry.keys) {
        (Detail::Explain, Some(_)) => wrap(&text, width),
        _ => vec![text],
    };
    for (y, line) in (geometry.detail..).zip(lines.iter().take(2)) {
        let blank = " ".repeat(width);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(0, y, blank, width, Style::new());
        buffer.set_stringn(0, y, text::cut_end(line, width), width, Style::new());
    }
}

fn row(app: &App, theme: &Theme, width: usize) -> String {
    if let Some(diff) = app.difference_here() {
        return difference::draw::detail(app, diff);
    }
    let report = &app.shown.report;
    let pane = app.in_pane();
    match app.focus() {
        ViewId::Functions => match app.views.functions.selected(report) {
            Some(line) if line.gone => {
                let room = width.saturating_sub(GONE.len());
                format!("{GONE}{}", function(line.row, app, theme, room))
            }
            Some(line) => function(line.row, app, theme, width),
            None => String::new(),
        },
        ViewId::Tree => tree::draw::detail(app, width, theme),
        ViewId::Flame => flame::words::detail(app, width),
        ViewId::Page => page::words::detail(app, width),
        ViewId::Code => code::words::detail(app, width),
        ViewId::Time => time::words::detail(app, width),
        ViewId::Processes => app
            .views
            .processes
            .selected(report)
            .map_or_else(String::new, |line| process(line.row, app)),
        ViewId::Threads => app
            .views
            .threads_in(pane)
            .selected(report)
            .map_or_else(String::new, |line| thread(line.row, app)),
        ViewId::Health => findings(&app.shown)
            .into_iter()
            .nth(app.views.health.index())
            .map_or_else(String::new, |finding| finding.explain),
    }
}

/// `233 smp self ±0.9 pp / 1,036 total ±1.6 pp   /usr/bin/postgres+0x8f2c0`
fn function(function: &FunctionRow, app: &App, theme: &Theme, width: usize) -> String {
    let base = app.shown.report.samples;
    let (own, total) = (function.self_samples, function.total_samples);
    let mut parts = vec![format!(
        "{} smp self {} pp / {} total {} pp",
        units::count(own),
        units::band_text(&app.shown.report, own, base),
        units::count(total),
        units::band_text(&app.shown.report, total, base)
    )];
    match function.name_state {
        RowName::Named => {}
        RowName::Pending => parts.push("name on its way".into()),
        RowName::Unnamed(reason) => parts.push(format!(
            "no name: {}",
            why_unnamed(reason).trim_end_matches('.')
        )),
    }
    let used = |parts: &[String]| parts.iter().map(|p| text::width(p) + 3).sum::<usize>();
    let width_of_view = app.parts().map_or(0, |parts| parts.view.width);
    if functions::draw::is_cut(function, width_of_view, theme) {
        let room = width.saturating_sub(used(&parts));
        parts.push(text::cut_middle(&function.name, room).into_owned());
    }
    let room = width.saturating_sub(used(&parts));
    let source = page::words::source(function.file.as_deref(), function.line);
    parts.extend(source.filter(|place| text::width(place) <= room));
    let room = width.saturating_sub(used(&parts));
    let offset = format!("+{:#x}", function.address);
    let path = if function.module_path.is_empty() {
        &function.module
    } else {
        &function.module_path
    };
    let places = [
        format!("{}{offset}", text::clean(path)),
        format!("{}{offset}", text::clean(&function.module)),
    ];
    parts.extend(places.into_iter().find(|place| text::width(place) <= room));
    parts.join("   ")
}

fn process(process: &ProcessRow, app: &App) -> String {
    let base = app.shown.report.samples;
    format!(
        "{}[{}]   {} smp = {}% of scope {} pp   {} in the kernel{}",
        process.comm,
        processes::draw::number(process.pid, &app.shown),
        units::count(process.samples),
        units::share(&app.shown.report, process.samples, base),
        units::band_text(&app.shown.report, process.samples, base),
        units::count(process.kernel_samples),
        if process.exited { "   ended" } else { "" }
    )
}

fn thread(thread: &ThreadRow, app: &App) -> String {
    let base = app.shown.report.samples;
    format!(
        "{}[{}] of {}   {} smp = {}% of scope {} pp   {} in the kernel",
        thread.comm,
        thread.tid,
        thread.pid,
        units::count(thread.samples),
        units::share(&app.shown.report, thread.samples, base),
        units::band_text(&app.shown.report, thread.samples, base),
        units::count(thread.kernel_samples)
    )
}

fn say(app: &App, notice: &Notice) -> String {
    match notice {
        Notice::Found {
            pattern,
            rows,
            samples,
            position,
        } => {
            let found = footer::found(app, *rows, *samples);
            let position = position.map_or_else(String::new, |at| format!("   {at} of {rows}"));
            let found = format!("/{pattern}/ {found}{position}");
            let keys = [Action::FindNext, Action::FindPrevious];
            and(&found, "   ", [hints(app, keys, "next, previous")])
        }
        Notice::NoFind => {
            let opens = key(app, Action::Find).map(|key| format!("{key} opens the find line"));
            and("nothing to find", ": ", [opens])
        }
        Notice::NoPane => {
            "nothing stands beside this view here: that takes a terminal of 120 columns".into()
        }
        Notice::NoBack => "this is where it began: there is nothing to go back to".into(),
        Notice::NoForward => "this is the newest place: there is nothing ahead".into(),
        Notice::NothingSelected => "nothing is selected that this could be about".into(),
        Notice::OnlySampled(scope) => format!("only {scope} is sampled: nothing else came in"),
        Notice::Marked => {
            let anew = hint(app, Action::Mark, "mark anew");
            let undo = hint(app, Action::Back, "undo");
            and("marked: the window is from now on", "; ", [anew, undo])
        }
        Notice::Rate { hz, is_new: true } => format!(
            "{hz} Hz from now on; a window that has both rates counts all at the higher one"
        ),
        Notice::Rate { hz, is_new: false } => format!("{hz} Hz, as before"),
        Notice::NoSampling(why) => format!("the rate cannot be changed: {why}"),
        Notice::OneMetric(why) => why.clone(),
        Notice::Writing { bytes: 0, .. } => "writing…".into(),
        Notice::Writing { bytes, about } => {
            let so_far = units::bytes(*bytes);
            match about.filter(|about| about >= bytes) {
                Some(about) => format!("writing… {}%  {so_far}", bytes * 100 / about),
                None => format!("writing… {so_far}"),
            }
        }
        Notice::Written { path, bytes } => {
            let wrote = format!("wrote {path}, {}", units::bytes(*bytes));
            match app.is_remote {
                true => format!(
                    "{wrote}   scp {}:{path} .",
                    text::clean(&app.shown.host.name)
                ),
                false => wrote,
            }
        }
        Notice::NotWritten { why, stopped: None } => format!("not written: {why}"),
        Notice::NotWritten {
            why,
            stopped: Some(count),
        } => {
            let files = units::counted(u64::from(*count), "file");
            format!("not written, and no more follow {files}: {why}")
        }
        Notice::NoMoreFiles(count) => {
            let files = units::counted(u64::from(*count), "file");
            format!("no more files follow: {files} written")
        }
        Notice::NothingToWrite => "no samples have come yet".into(),
        Notice::Baseline(samples) => {
            let are = format!("{} are A now", units::counted(*samples, "sample"));
            let differs = hint(app, Action::Difference, "what differs from them");
            and(&are, "; ", [differs])
        }
        Notice::NotInDifference => {
            let back = key(app, Action::Difference);
            let back = back.map(|key| format!("{key} goes back to the functions"));
            and("not in the difference", ": ", [back])
        }
        Notice::NoBaseline => {
            let makes = key(app, Action::Baseline);
            let makes = makes.map(|key| format!("{key} makes what is shown A"));
            and("nothing to compare with yet", ": ", [makes])
        }
        Notice::NoTime => {
            "this file does not say when a sample was taken: it has one window".into()
        }
        Notice::NoNow => "no samples come in that a window from now on could show".into(),
        Notice::HotPath(0) => "nothing below has half of it: the hot path ends here".into(),
        Notice::HotPath(steps) => {
            let steps = units::counted(u64::from(*steps), "step");
            format!("the hot path ends here, {steps} down: nothing below has half of it")
        }
        Notice::TimeUsed => {
            let shorter = key(app, Action::ShorterWindow);
            let keys = shorter.zip(key(app, Action::LongerWindow));
            let back = keys.map(|(one, other)| format!("{one} {other} back to now"));
            and("every view counts this time only", "   ", [back])
        }
        Notice::FoundBelow(name) => {
            format!("on none of these rows: where {name} has most samples")
        }
        Notice::SameName { position, count } => {
            let count = units::counted(*count as u64, "frame");
            let here = format!("{position} of {count} of this function here");
            and(&here, "   ", [hint(app, Action::SameName, "next")])
        }
        Notice::Copied(name) => format!("sent to the terminal's clipboard: {name}"),
        Notice::Mouse(true) => {
            let off = hint(app, Action::Mouse, "off");
            and("mouse on: click selects, wheel moves", "; ", [off])
        }
        Notice::Mouse(false) => {
            let on = hint(app, Action::Mouse, "on");
            and("mouse off: the terminal selects text again", "; ", [on])
        }
        Notice::NoSource => "there is no source text here that could be edited".into(),
        Notice::NotEdited(why) => format!("not edited: {why}"),
        Notice::Unsampled(name) => format!("no sample in this window was in {name}"),
        Notice::NothingCalled => "nothing is called from this row".into(),
        Notice::HotLine(None) => "no sample hit here".into(),
        Notice::HotLine(Some((position, count))) => {
            let count = units::counted(*count as u64, "hot row");
            let which = format!("{position} of {count}: those with 5% of it or more");
            let keys = [Action::HotPrevious, Action::HotNext];
            and(&which, "   ", [hints(app, keys, "others")])
        }
        Notice::Syntax(name) => {
            let written = format!("instructions in {name} syntax");
            and(&written, "   ", [hint(app, Action::Syntax, "the other")])
        }
        Notice::NoOutput => "no command was started, or it printed nothing so far".into(),
        Notice::Configuration(what) => format!("configuration: {what}"),
        Notice::NoKill => "proftop does not kill; it only watches".into(),
    }
}

/// At spaces, into lines of at most `width` cells.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text = text::clean(text);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a last line");
        if last.is_empty() {
            last.push_str(word);
        } else if text::width(last) + 1 + text::width(word) <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
