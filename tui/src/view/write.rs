//! The write dialog, over the body.

use super::text;
use super::theme::Theme;
use crate::app::App;
use crate::screen::write::{Field, KINDS, Problem, WriteDialog, subject};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

const WIDTH_MAX: u16 = 80;
/// What is written, the file's name, two lines for what is lost, and the frame.
const HEIGHT_OTHERS: u16 = 6;
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
    let keys = match dialog.problem {
        Some(Problem::Exists) => " ^o overwrite   Esc cancel ",
        _ => " Enter write   Tab field   Up Down format   Esc cancel ",
    };
    let block = Block::bordered().title(" Write ").title_bottom(keys);
    let inner = block.inner(area);
    Clear.render(area, frame.buffer_mut());
    block.render(area, frame.buffer_mut());
    let kinds = inner.height.saturating_sub(4).max(1);
    let line = |y: u16| Rect {
        y: inner.y + y,
        height: 1,
        ..inner
    };
    entry(
        "What",
        &subject(app, dialog.kind()),
        Style::new(),
        theme,
        frame,
        line(0),
    );
    render_kinds(dialog, kinds, theme, frame, line(1));
    render_file(dialog, theme, frame, line(1 + kinds));
    let (label, words, style) = match &dialog.problem {
        Some(Problem::Exists) => (
            "Exists",
            "there is such a file: ^o overwrites it, or type another name".into(),
            theme.warning(),
        ),
        Some(Problem::Failed(why)) => ("", why.clone(), theme.warning()),
        None => match dialog.kind().loses() {
            nothing if nothing.is_empty() => ("Loses", "nothing".into(), Style::new()),
            loses => ("Loses", loses, Style::new()),
        },
    };
    let room = usize::from(inner.width.saturating_sub(INDENT));
    let lines = super::detail::wrap(&words, room);
    for (number, words) in (0..2).zip(&lines) {
        let label = if number == 0 { label } else { "" };
        entry(label, words, style, theme, frame, line(2 + kinds + number));
    }
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
