//! The key line: the most useful keys of the view, from the table of keys, as
//! many as fit. While a find is being typed it is the find line.

use super::theme::Theme;
use super::{text, units};
use crate::action::{self, Action, Binding};
use crate::app::App;
use crate::screen::View;
use crate::screen::find::Prompt;
use crate::screen::tree::FoldAction;
use crate::snapshot::Snapshot;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    let mut x = area.x;
    for binding in hints(app, usize::from(area.width), theme.is_ascii()) {
        let key = key(binding, theme.is_ascii());
        buffer.set_string(x, area.y, &key, theme.title());
        x += text::width(&key) as u16 + 1;
        buffer.set_string(x, area.y, binding.hint, Style::new());
        x += binding.hint.len() as u16 + 2;
    }
}

/// The hints that fit; help and quit always do, whatever has to go.
fn hints(app: &App, width: usize, ascii: bool) -> Vec<&'static Binding> {
    let mut hints: Vec<&Binding> = action::bindings(app.view)
        .filter(|binding| !binding.hint.is_empty())
        .collect();
    let needed = |hints: &[&Binding]| -> usize {
        let widths = hints
            .iter()
            .map(|b| text::width(&key(b, ascii)) + b.hint.len() + 3);
        widths.sum::<usize>().saturating_sub(2)
    };
    while needed(&hints) > width {
        let last = hints
            .iter()
            .rposition(|b| !matches!(b.action, Action::Help | Action::Quit));
        match last {
            Some(at) => hints.remove(at),
            None => return hints,
        };
    }
    hints
}

fn key(binding: &Binding, ascii: bool) -> String {
    match binding.action {
        Action::LongerWindow => ", .".into(),
        Action::SortRight => "< >".into(),
        Action::Fold(FoldAction::OpenAll) => "E C".into(),
        _ => binding.keys[0].label(ascii),
    }
}

/// The find line; the hardware cursor is where the next letter goes.
pub fn render_find(app: &App, prompt: &Prompt, theme: &Theme, frame: &mut Frame, area: Rect) {
    let room = usize::from(area.width);
    let result = result(app, prompt);
    let typed_room = room.saturating_sub(text::width(&result) + 4).max(10);
    let typed = text::clean(&prompt.text);
    let hidden = text::width(&typed).saturating_sub(typed_room);
    let typed: String = typed.chars().skip(hidden).collect();
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x, area.y, " ".repeat(room), room, Style::new());
    buffer.set_string(area.x, area.y, "/", theme.title());
    let (end, _) = buffer.set_stringn(area.x + 1, area.y, &typed, typed_room, Style::new());
    let start = area.right().saturating_sub(text::width(&result) as u16);
    let start = start.max(end + 2).min(area.right());
    let left = usize::from(area.right() - start);
    buffer.set_stringn(start, area.y, &result, left, theme.dim());
    frame.set_cursor_position(Position::new(end, area.y));
}

fn result(app: &App, prompt: &Prompt) -> String {
    if let Some(error) = &prompt.error {
        return format!("{} at {}", error.message, error.position);
    }
    match app.find() {
        None => "regular expression; Enter: select, Esc: end".into(),
        Some((_, (rows, samples), _)) => found(app, rows, samples),
    }
}

/// `18.2% of scope in 14 functions`
pub fn found(app: &App, rows: usize, samples: u64) -> String {
    let snapshot: &Snapshot = &app.shown;
    let noun = match app.view {
        View::Functions => "function",
        View::Processes => "process",
        View::Threads => "thread",
        View::Tree => "open row",
        View::Flame => "frame here",
        View::Health => "line",
    };
    let rows = match (app.view, rows) {
        (View::Processes, 0 | 2..) => format!("{} processes", units::count(rows as u64)),
        _ => units::counted(rows as u64, noun),
    };
    // Rows of the tree hold one another: their samples do not add up.
    if app.view == View::Tree {
        return format!("in {rows}");
    }
    format!(
        "{}% of scope in {rows}",
        units::percent(samples, snapshot.report.samples),
    )
}
