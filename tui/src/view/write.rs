//! The write dialog, over the body.

use super::theme::Theme;
use super::{text, units};
use crate::app::App;
use crate::screen::write::{Field, FileKind, KINDS, Problem, Room, Switch, WriteDialog, subject};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

const WIDTH_MAX: u16 = 80;
/// The frame, and every line but those of the formats: what is written, the file's
/// name, the room for it, two lines of options, and two for what is lost.
const HEIGHT_OTHERS: u16 = 9;
/// Labels are left of that.
const INDENT: u16 = 9;

pub fn render(app: &App, dialog: &WriteDialog, theme: &Theme, frame: &mut Frame) {
    let all = frame.area();
    let width = all.width.min(WIDTH_MAX);
    let room = all.height.saturating_sub(3);
    let height = room.min(HEIGHT_OTHERS + KINDS.len() as u16);
    let area = Rect {
        x: (all.width - width) / 2,
        y: 3,
        width,
        height,
    };
    let block = Block::bordered()
        .title(" Write ")
        .title_bottom(keys(app, dialog, width));
    let inner = block.inner(area);
    Clear.render(area, frame.buffer_mut());
    block.render(area, frame.buffer_mut());
    let kinds = inner.height.saturating_sub(HEIGHT_OTHERS - 2).max(1);
    let line = |y: u16| Rect {
        y: inner.y + y,
        height: 1,
        ..inner
    };
    let plain = Style::new();
    let what = subject(app, dialog.kind());
    entry("What", &what, plain, theme, frame, line(0));
    render_kinds(dialog, kinds, theme, frame, line(1));
    render_file(dialog, theme, frame, line(1 + kinds));
    let words = dialog.room.as_ref().map_or_else(String::new, room_words);
    entry("", &words, theme.dim(), theme, frame, line(2 + kinds));
    let threads = (Field::Threads, "split by thread".to_owned());
    let names = (Field::Names, "hide names".to_owned());
    let more = match dialog.options.seconds {
        0 => "go on writing every _ s".into(),
        seconds => format!("go on writing every {seconds} s"),
    };
    let options = [threads, names];
    render_options("Options", dialog, &options, theme, frame, line(3 + kinds));
    let options = [(Field::Repeat, more)];
    render_options("", dialog, &options, theme, frame, line(4 + kinds));
    let (label, words, style) = remark(app, dialog, theme);
    let room = usize::from(inner.width.saturating_sub(INDENT));
    let lines = super::detail::wrap(&words, room);
    for (number, words) in (0..2).zip(&lines) {
        let label = if number == 0 { label } else { "" };
        entry(label, words, style, theme, frame, line(5 + kinds + number));
    }
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

fn entry(label: &str, words: &str, style: Style, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x + 1, area.y, label, area.width.into(), theme.title());
    let room = usize::from(area.width.saturating_sub(INDENT));
    let words = text::clean(words);
    let words = text::cut_end(&words, room);
    buffer.set_stringn(area.x + INDENT, area.y, words, room, style);
}

/// The chosen one is always among those that there is room for.
fn render_kinds(dialog: &WriteDialog, rows: u16, theme: &Theme, frame: &mut Frame, first: Rect) {
    let chosen = dialog.kind_number();
    let skipped = (chosen + 1).saturating_sub(rows.into());
    let shown = KINDS.iter().enumerate().skip(skipped).take(rows.into());
    for ((number, kind), y) in shown.zip(first.y..) {
        let line = Rect { y, ..first };
        let label = if y == first.y { "Format" } else { "" };
        let sign = if number == chosen { "(*)" } else { "( )" };
        let words = format!("{sign} {:<17} {}", kind.ending(), kind.purpose());
        let is_here = number == chosen && dialog.field == Field::Format;
        let style = if is_here {
            theme.selected()
        } else {
            Style::new()
        };
        entry(label, &words, style, theme, frame, line);
        if is_here {
            frame.set_cursor_position(Position::new(line.x + INDENT, y));
        }
    }
}

/// On one line, each as wide as its words.
fn render_options(
    label: &str,
    dialog: &WriteDialog,
    options: &[(Field, String)],
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    entry(label, "", Style::new(), theme, frame, area);
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

fn render_file(dialog: &WriteDialog, theme: &Theme, frame: &mut Frame, area: Rect) {
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
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x + 1, area.y, "File", 4, theme.title());
}
