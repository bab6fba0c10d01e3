//! The write dialog, over the body.

use crate::app::App;
use crate::dialogs::write::{Field, FileKind, KINDS, Problem, Room, Switch, WriteDialog};
use crate::knobs::Window;
use crate::widgets::dialog;
use crate::widgets::dialog::Dialog;
use crate::widgets::theme::Theme;
use crate::words::{text, units};
use engine::snapshot::Span;
use profile::View;
use profile::formats::Format;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The frame, and every line but those of the formats: what is written, the file's
/// name, the room for it, three lines of options, and two for what is lost.
const HEIGHT_OTHERS: u16 = 10;
const INDENT: u16 = 9;

pub fn render(app: &App, write: &WriteDialog, theme: &Theme, frame: &mut Frame) {
    let area = dialog::area(frame.area(), HEIGHT_OTHERS + KINDS.len() as u16);
    let keys = keys(app, write, area.width);
    let on = Dialog::open(area, " Write ", keys, INDENT, theme, frame);
    let kinds = on.height().saturating_sub(HEIGHT_OTHERS - 2).max(1);
    let what = subject(app, write.kind());
    on.entry("What", &what, Style::new(), frame, on.line(0));
    render_kinds(write, &on, kinds, frame);
    render_file(write, &on, 1 + kinds, frame);
    let words = [
        write
            .size()
            .map(|bytes| format!("about {}", units::bytes(bytes))),
        write.room.as_ref().map(room_words),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    on.entry(
        "",
        &words.join("   "),
        theme.dim(),
        frame,
        on.line(2 + kinds),
    );
    let more = match write.options.seconds {
        0 => "go on writing every _ s".into(),
        seconds => format!("go on writing every {seconds} s"),
    };
    let options: [&[(Field, &str)]; 3] = [
        &[(Field::Symbols, "symbols"), (Field::BuildIds, "build-ids")],
        &[
            (Field::Threads, "split by thread"),
            (Field::Names, "hide names"),
        ],
        &[(Field::Repeat, &more)],
    ];
    for (options, number) in options.into_iter().zip(0..) {
        let label = if number == 0 { "Options" } else { "" };
        render_options(label, write, options, &on, 3 + kinds + number, frame);
    }
    let (label, words, style) = remark(app, write, theme);
    on.remark(label, &words, style, frame, 6 + kinds);
}

/// What can be pressed, as far as there is room to say so.
fn keys(app: &App, dialog: &WriteDialog, width: u16) -> &'static str {
    let is_wide = width >= 72;
    match (&dialog.problem, dialog.field) {
        (Some(Problem::Exists), _) => " ^o overwrite   Esc cancel ",
        _ if app.repeat().is_some() && is_wide => {
            " Enter write   Tab field   Space on, off   ^x no more files   Esc cancel "
        }
        _ if app.repeat().is_some() => " Enter write   Tab field   ^x no more files   Esc cancel ",
        (_, Field::Format | Field::File) => {
            " Enter write   Tab field   Up Down format   Esc cancel "
        }
        (_, Field::Repeat) => " Enter write   Tab field   Space on, off   0-9   Esc ",
        _ => " Enter write   Tab field   Space on, off   Esc cancel ",
    }
}

/// `free here: 41.0 GB   the file will be ann's (sudo)`
fn room_words(room: &Room) -> String {
    let free = match &room.free_bytes {
        Ok(bytes) => format!("free here: {}", units::bytes(*bytes)),
        Err(why) => format!("free here: not known ({why})"),
    };
    match &room.owner {
        Some(owner) => format!("{free}   the file will be {owner}'s (sudo)"),
        None => free,
    }
}

/// What is wrong, what an option does while the keys go there, or else what the
/// format does not hold.
fn remark(app: &App, dialog: &WriteDialog, theme: &Theme) -> (&'static str, String, Style) {
    let plain = Style::new();
    match (&dialog.problem, option_words(app, dialog)) {
        (Some(Problem::Exists), _) => (
            "Exists",
            "there is such a file: ^o overwrites it, or type another name".into(),
            theme.warning(),
        ),
        (Some(Problem::Failed(why)), _) => ("", why.clone(), theme.warning()),
        (None, Some(words)) => ("", words, plain),
        (None, None) => match dialog.kind().loses() {
            nothing if nothing.is_empty() => ("Loses", "nothing".into(), plain),
            loses => ("Loses", loses, plain),
        },
    }
}

fn option_words(app: &App, dialog: &WriteDialog) -> Option<String> {
    let is_text = dialog.kind() == FileKind::Text;
    let words = match (dialog.field, dialog.switch(dialog.field)?) {
        (Field::Symbols, _) if is_text => "the screen is written as it is",
        (Field::Symbols, _) => {
            "functions and lines; without, places in files, and proftop resolve finds names again"
        }
        (Field::BuildIds, Switch::Never) => "this format has no room for them",
        (Field::BuildIds, _) => "which build of each file it was: who has it finds names and lines",
        (Field::Threads, Switch::Always) => "this format holds what each thread did",
        (Field::Threads, _) if is_text => "the screen is written as it is",
        (Field::Threads, _) => "each thread by itself; else threads of one name are put together",
        (Field::Names, _) if is_text => "not of a screen: the names are on it",
        (Field::Names, _) => {
            "commands, users, machines and directories become numbers; names of functions and files stay"
        }
        (_, Switch::Never) => "no more samples will come: this is one file",
        _ => match app.repeat() {
            Some(repeat) => {
                let (files, every) = (repeat.count, repeat.every.as_secs());
                let files = units::counted(u64::from(files), "file");
                return Some(format!("{files} so far, one every {every} s"));
            }
            None => "one file after the other, with numbers in their names, until the target ends",
        },
    };
    Some(words.into())
}

/// The chosen one is always among those that there is room for.
fn render_kinds(dialog: &WriteDialog, on: &Dialog, rows: u16, frame: &mut Frame) {
    let chosen = dialog.kind_number();
    let skipped = (chosen + 1).saturating_sub(rows.into());
    let shown = KINDS.iter().enumerate().skip(skipped).take(rows.into());
    for ((number, kind), row) in shown.zip(1..) {
        let line = on.line(row);
        let label = if row == 1 { "Format" } else { "" };
        let sign = if number == chosen { "(*)" } else { "( )" };
        let words = format!("{sign} {:<17} {}", kind.ending(), kind.purpose());
        let is_here = number == chosen && dialog.field == Field::Format;
        let style = if is_here {
            on.theme.selected()
        } else {
            Style::new()
        };
        on.entry(label, &words, style, frame, line);
        if is_here {
            frame.set_cursor_position(Position::new(line.x + INDENT, line.y));
        }
    }
}

/// On one line, each as wide as its words.
fn render_options(
    label: &str,
    dialog: &WriteDialog,
    options: &[(Field, &str)],
    on: &Dialog,
    row: u16,
    frame: &mut Frame,
) {
    let (area, theme) = (on.line(row), on.theme);
    on.entry(label, "", Style::new(), frame, area);
    let mut x = area.x + INDENT;
    for (field, words) in options {
        let Some(switch) = dialog.switch(*field) else {
            continue;
        };
        let is_here = dialog.field == *field;
        let style = match (is_here, switch.can_be_turned()) {
            (true, _) => theme.selected(),
            (false, true) => Style::new(),
            (false, false) => theme.dim(),
        };
        let words = format!("{} {words}", switch.sign());
        let room = usize::from(area.right().saturating_sub(x));
        let buffer = frame.buffer_mut();
        let (end, _) = buffer.set_stringn(x, area.y, words, room, style);
        if is_here {
            frame.set_cursor_position(Position::new(x, area.y));
        }
        x = end + 3;
    }
}

fn render_file(dialog: &WriteDialog, on: &Dialog, row: u16, frame: &mut Frame) {
    let (area, theme) = (on.line(row), on.theme);
    on.entry("File", "", Style::new(), frame, area);
    let typed = Rect {
        x: area.x + INDENT - 1,
        width: area.width - INDENT,
        ..area
    };
    if dialog.field == Field::File {
        let before = dialog.file.before();
        let after = &dialog.file.text()[before.len()..];
        super::footer::render_prompt(" ", (before, after), "", theme, frame, typed);
    } else {
        let room = usize::from(typed.width.saturating_sub(1));
        let name = text::clean(dialog.file.text());
        let name = text::cut_middle(&name, room);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(typed.x + 1, typed.y, name, room, Style::new());
    }
}

/// What is written, in words.
fn subject(app: &App, kind: FileKind) -> String {
    let shown = &app.shown;
    let samples = units::counted;
    match kind {
        FileKind::Profile(Format::Pft) => {
            let kept = shown.view.as_ref().map_or(0, View::samples);
            format!("all that is kept: {}", samples(kept, "sample"))
        }
        FileKind::Profile(_) => {
            let window = match app.knobs.window {
                Window::Last(Span::All) => "all".into(),
                Window::Last(span) => format!("last {}", units::span(span)),
                Window::Since { .. } => "since the mark".into(),
                Window::Between { .. } => "the marked time".into(),
            };
            let filter = match app.knobs.filter.is_empty() {
                true => "",
                false => ", filtered",
            };
            format!(
                "this query: {}, {window}{filter}: {}",
                app.context().scope_words(),
                samples(shown.report.samples, "sample")
            )
        }
        FileKind::Text => "the lines of this screen".into(),
    }
}
