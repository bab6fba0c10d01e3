//! The write dialog, over the body.

use crate::app::App;
use crate::dialogs::write::{
    Field, FileKind, KINDS, Problem, Room, SUBJECTS, Subject, Switch, WriteDialog,
};
use crate::knobs::Window;
use crate::widgets::dialog;
use crate::widgets::dialog::Dialog;
use crate::widgets::theme::Theme;
use crate::words::{metric, text, units};
use engine::snapshot::Span;
use profile::View;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Number of lines of the dialog without those of subjects and formats: two of the frame, one for
/// the name of the file, one for its size and free space, two of options, and two for the remark.
const HEIGHT_OTHERS: u16 = 8;
/// Width of the labels.
const INDENT: u16 = 9;

/// Draws the write dialog.
pub fn render(app: &App, write: &WriteDialog, theme: &Theme, frame: &mut Frame) {
    let all = (SUBJECTS.len() + KINDS.len()) as u16;
    let area = dialog::area(frame.area(), HEIGHT_OTHERS + all);
    let keys = keys(app, write, area.width);
    let on = Dialog::open(area, " Write ", keys, INDENT, theme, frame);
    let room = on.height().saturating_sub(HEIGHT_OTHERS - 2);
    // If there is not enough room for all formats, only the chosen subject is shown.
    let subjects = if room < all { 1 } else { SUBJECTS.len() as u16 };
    render_subjects(app, write, &on, subjects, frame);
    let kinds = room.saturating_sub(subjects).max(1);
    render_kinds(write, &on, subjects, kinds, frame);
    let kinds = subjects + kinds;
    render_file(write, &on, kinds, frame);
    // Lines from the top: subjects, formats, name of the file, size and free space, options,
    // remark.
    let (words, style) = size_and_room(write, theme);
    on.entry("", &words, style, frame, on.line(1 + kinds));
    let more = match write.options.seconds {
        0 => "go on writing every _ s".into(),
        seconds => format!("go on writing every {seconds} s"),
    };
    let options: [&[(Field, &str)]; 2] = [
        &[
            (Field::Symbols, "symbols"),
            (Field::BuildIds, "build-ids"),
            (Field::Threads, "split by thread"),
        ],
        &[(Field::Names, "hide names"), (Field::Repeat, &more)],
    ];
    for (options, number) in options.into_iter().zip(0..) {
        let label = if number == 0 { "Options" } else { "" };
        render_options(label, write, options, &on, 2 + kinds + number, frame);
    }
    let (label, words, style) = remark(app, write, theme);
    on.remark(label, &words, style, frame, 4 + kinds);
}

/// Returns the line of keys, in a short form if the dialog is narrow.
fn keys(app: &App, dialog: &WriteDialog, width: u16) -> &'static str {
    let is_wide = width >= 72;
    match (&dialog.problem, dialog.field) {
        (Some(Problem::Exists), _) => " ^o overwrite   Esc cancel ",
        _ if app.repeat().is_some() && is_wide => {
            " Enter write   Tab field   Space on, off   ^x no more files   Esc cancel "
        }
        _ if app.repeat().is_some() => " Enter write   Tab field   ^x no more files   Esc cancel ",
        (_, Field::Subject) => " Enter write   Tab field   Left Right what   Esc cancel ",
        (_, Field::Format | Field::File) => {
            " Enter write   Tab field   Up Down format   Esc cancel "
        }
        (_, Field::Repeat) => " Enter write   Tab field   Space on, off   0-9   Esc ",
        _ => " Enter write   Tab field   Space on, off   Esc cancel ",
    }
}

/// Returns the size of the file and the free space, such as `about 8 MB   in /srv, 41.0 GB free`.
/// It is a warning if the file does not fit.
fn size_and_room(dialog: &WriteDialog, theme: &Theme) -> (String, Style) {
    let size = dialog.size();
    let free = dialog
        .room
        .as_ref()
        .and_then(|room| room.free_bytes.as_ref().ok());
    let is_short = size.zip(free).is_some_and(|(size, free)| size > *free);
    let about = match (size, is_short) {
        (Some(bytes), true) => Some(format!("too large: about {}", units::bytes(bytes))),
        (Some(bytes), false) => Some(format!("about {}", units::bytes(bytes))),
        (None, _) => None,
    };
    let words: Vec<String> = about
        .into_iter()
        .chain(dialog.room.as_ref().map(room_words))
        .collect();
    let style = if is_short {
        theme.warning()
    } else {
        theme.dim()
    };
    (words.join("   "), style)
}

/// Returns the free space in the folder, such as `in /srv, 41.0 GB free   the file will be ann's
/// (sudo)`.
fn room_words(room: &Room) -> String {
    let free = match &room.free_bytes {
        Ok(bytes) => format!("{} free", units::bytes(*bytes)),
        Err(why) => format!("free: not known ({why})"),
    };
    let folder = text::clean(&room.path.to_string_lossy()).into_owned();
    let free = format!("in {}, {free}", text::cut_middle(&folder, 40));
    match &room.owner {
        Some(owner) => format!("{free}   the file will be {owner}'s (sudo)"),
        None => free,
    }
}

/// Returns the remark at the bottom of the dialog: what is wrong, or else what the selected option
/// does, or else what the format cannot contain.
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

/// Returns what the selected option does, or why it cannot be changed. Returns `None` if the
/// selected field is not an option.
fn option_words(app: &App, dialog: &WriteDialog) -> Option<String> {
    let is_text = dialog.kind() == FileKind::Text;
    let words = match (dialog.field, dialog.switch(dialog.field)?) {
        (Field::Symbols, _) if is_text => "the screen is written as it is",
        (Field::Symbols, _) => {
            "names of functions, and lines; without, addresses only: proftop resolve adds names later"
        }
        (Field::BuildIds, Switch::Never) => "this format cannot hold build-ids",
        (Field::BuildIds, _) => {
            "say which build of each file ran, so that names can be found later"
        }
        (Field::Threads, Switch::Always) => "this format always keeps each thread by itself",
        (Field::Threads, _) if is_text => "the screen is written as it is",
        (Field::Threads, _) => {
            "keeps each thread by itself; without, threads of the same name are added up"
        }
        (Field::Names, _) if is_text => "cannot be had: the screen shows the names",
        (Field::Names, _) => {
            "numbers in place of commands, users, machines and directories; functions and files keep their names"
        }
        (_, Switch::Never) => "only one file can be written: no more samples will come",
        _ => match app.repeat() {
            Some(repeat) => {
                let (files, every) = (repeat.count, repeat.every.as_secs());
                let files = units::counted(u64::from(files), "file");
                return Some(format!("{files} so far, one every {every} s"));
            }
            None => {
                "writes one file after the other, with numbers in their names, until the target ends"
            }
        },
    };
    Some(words.into())
}

/// Draws as many formats as there is room for, including the chosen one.
fn render_kinds(dialog: &WriteDialog, on: &Dialog, first: u16, rows: u16, frame: &mut Frame) {
    let chosen = dialog.kind_number();
    // As many of the first formats are skipped as needed to make the chosen one visible.
    let skipped = (chosen + 1).saturating_sub(rows.into());
    let shown = KINDS.iter().enumerate().skip(skipped).take(rows.into());
    for ((number, kind), row) in shown.zip(first..) {
        let line = on.line(row);
        let label = if row == first { "Format" } else { "" };
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

/// Draws the subjects, or only the chosen one if there is no room for more.
fn render_subjects(app: &App, dialog: &WriteDialog, on: &Dialog, rows: u16, frame: &mut Frame) {
    let chosen = dialog.subject();
    let is_shown = |subject: &Subject| rows > 1 || *subject == chosen;
    let shown = SUBJECTS.into_iter().filter(is_shown);
    for (subject, row) in shown.zip(0..) {
        let line = on.line(row);
        let label = if row == 0 { "What" } else { "" };
        let sign = if subject == chosen { "(*)" } else { "( )" };
        let words = subject_words(app, subject);
        // If there is only one line, the number of samples is more useful than the name of the
        // subject.
        let words = match (rows, words.split_once(": ")) {
            (1, Some((_, rest))) => rest.to_owned(),
            _ => format!("{sign} {words}"),
        };
        let is_here = subject == chosen && dialog.field == Field::Subject;
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

/// Draws the options on one line, each as wide as its words.
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
        width: area.width.saturating_sub(INDENT),
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

/// Returns words for a subject, with its number of samples.
fn subject_words(app: &App, subject: Subject) -> String {
    let shown = &app.shown;
    let cx = app.context();
    let samples = |count| metric::counted(&cx, count);
    match subject {
        Subject::All => {
            let kept = shown.view.as_ref().map_or(0, View::samples);
            // The samples are counted here, not the time that they stand for.
            format!("all that is kept: {}", units::counted(kept, "sample"))
        }
        Subject::Shown => {
            let window = match app.knobs.window {
                Window::Last(Span::All) => "all the time".into(),
                Window::Last(span) => format!("last {}", units::span(span)),
                Window::Since { .. } => "since the mark".into(),
                Window::Between { .. } => "the marked time".into(),
            };
            let filter = if app.knobs.filter.is_empty() {
                ""
            } else {
                ", filtered"
            };
            format!(
                "this scope and window: {}, {window}{filter}: {}",
                app.context().scope_words(),
                samples(shown.report.samples)
            )
        }
        Subject::Screen => "this view: the lines of the screen, as text".into(),
    }
}
