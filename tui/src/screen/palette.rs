//! The palette: a few lines at the bottom of the screen, above the line that is being typed.

use super::footer;
use crate::app::App;
use crate::dialogs::palette::Palette;
use crate::geometry::Geometry;
use crate::order::{begun, said};
use crate::status;
use crate::widgets::theme::Theme;
use crate::words::text;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Maximum number of actions that are listed at once.
const LINES_MAX: usize = 10;
/// Width of a name in cells.
const NAME_WIDTH: u16 = 18;

/// Draws the line that is being typed and, above it, the matching actions and orders.
pub fn render(app: &App, palette: &Palette, geometry: Geometry, theme: &Theme, frame: &mut Frame) {
    let probe = app.views.probes.selected(&app.shown);
    let completions = palette.completions(app.suggested(), probe);
    if !completions.is_empty() {
        return render_completions(app, palette, &completions, geometry, theme, frame);
    }
    let matches = palette.matches(&app.input.keymap, app.focus());
    let typed = geometry.keys.unwrap_or(geometry.detail);
    let is_order = said(palette.line.text()).is_some();
    let orders: Vec<_> = begun(palette.line.text()).collect();
    let room = usize::from(typed.saturating_sub(geometry.body));
    // Orders are above the actions. All of them are shown, because few begin with the same letters.
    let room = room.saturating_sub(orders.len());
    let shown = matches.len().min(LINES_MAX).min(room);
    // The lines are scrolled so that the chosen one is visible.
    let first = (palette.chosen + 1).saturating_sub(shown);
    let top = typed - shown as u16;
    for (y, order) in (top.saturating_sub(orders.len() as u16)..top).zip(&orders) {
        let area = Rect::new(0, y, geometry.width, 1);
        let name = format!("{} {}", order.name, order.argument);
        let line = [&name, order.help, ""];
        draw_line(line, is_order, theme, frame.buffer_mut(), area);
    }
    for (y, at) in (top..typed).zip(first..) {
        let area = Rect::new(0, y, geometry.width, 1);
        let binding = matches[at];
        let line = [
            binding.name,
            binding.help,
            &binding.labels(theme.is_ascii()),
        ];
        draw_line(
            line,
            at == palette.chosen && !is_order,
            theme,
            frame.buffer_mut(),
            area,
        );
    }
    let count = matches.len();
    let result = match &palette.error {
        Some(why) => status::notice(app, why),
        None if is_order => "Enter: do it, Esc: leave it".into(),
        None => found(palette, count, orders.is_empty()),
    };
    let before = palette.line.before();
    let after = &palette.line.text()[before.len()..];
    let line = Rect::new(0, typed, geometry.width, 1);
    footer::render_prompt(":", (before, after), &result, theme, frame, line);
}

/// Draws the line that is being typed and, above it, the possible completions.
fn render_completions(
    app: &App,
    palette: &Palette,
    completions: &[String],
    geometry: Geometry,
    theme: &Theme,
    frame: &mut Frame,
) {
    let typed = geometry.keys.unwrap_or(geometry.detail);
    let room = usize::from(typed.saturating_sub(geometry.body));
    let shown = completions.len().min(LINES_MAX).min(room);
    let chosen = palette.completion();
    let first = chosen.map_or(0, |at| (at + 1).saturating_sub(shown));
    let width = usize::from(geometry.width);
    let buffer = frame.buffer_mut();
    for (y, at) in (typed - shown as u16..typed).zip(first..) {
        let area = Rect::new(0, y, geometry.width, 1);
        buffer.set_stringn(0, y, " ".repeat(width), width, Style::new());
        let name = text::cut_middle(&completions[at], width.saturating_sub(3));
        buffer.set_stringn(2, y, &*name, width.saturating_sub(2), theme.title());
        if chosen == Some(at) {
            buffer.set_string(0, y, ">", theme.title());
            buffer.set_style(area, theme.selected());
        }
    }
    let result = match &palette.error {
        Some(why) => status::notice(app, why),
        None => format!("{} names   Tab: take one, Enter: do it", completions.len()),
    };
    let before = palette.line.before();
    let after = &palette.line.text()[before.len()..];
    let line = Rect::new(0, typed, geometry.width, 1);
    footer::render_prompt(":", (before, after), &result, theme, frame, line);
}

/// Returns how many actions match, and which one is chosen. `is_all` says that no order matches
/// either.
fn found(palette: &Palette, count: usize, is_all: bool) -> String {
    match palette.chosen.min(count.saturating_sub(1)) {
        _ if count == 0 && is_all => "nothing is called so".into(),
        _ if count == 0 => "type what it needs behind it".into(),
        at => format!("{} of {count}   Enter: do it, Esc: leave it", at + 1),
    }
}

/// Draws the name of an action, what it does, and its keys.
fn draw_line(
    [name, help, keys]: [&str; 3],
    is_chosen: bool,
    theme: &Theme,
    buffer: &mut Buffer,
    area: Rect,
) {
    let width = usize::from(area.width);
    buffer.set_stringn(area.x, area.y, " ".repeat(width), width, Style::new());
    let sign = if is_chosen { ">" } else { " " };
    buffer.set_string(area.x, area.y, sign, theme.title());
    buffer.set_stringn(area.x + 2, area.y, name, width - 2, theme.title());
    let x = area.x + 2 + NAME_WIDTH;
    let keys_x = area.right().saturating_sub(text::width(keys) as u16 + 1);
    let room = usize::from(keys_x.saturating_sub(x + 1));
    buffer.set_stringn(x, area.y, text::cut_end(help, room), room, Style::new());
    buffer.set_string(keys_x, area.y, keys, theme.dim());
    if is_chosen {
        buffer.set_style(area, theme.selected());
    }
}
