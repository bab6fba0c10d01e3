//! The line of tabs: all views, with the open one in brackets.

use crate::app::App;
use crate::app::tabs::{help, tabs};
use crate::widgets::theme::Theme;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the line of tabs. Views whose data the recording lacks are dim.
pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    for tab in tabs(&app.input.keymap, app.view, area.width) {
        let style = if tab.view == app.view.tab() {
            theme.title()
        } else if tab.view.lacking(&app.shown).is_some() {
            theme.dim()
        } else {
            Style::new()
        };
        buffer.set_string(area.x + tab.start, area.y, tab.text, style);
    }
    let help = help(&app.input.keymap, app.view);
    let start = area.right().saturating_sub(text::width(&help) as u16);
    buffer.set_string(start, area.y, help, theme.dim());
}
