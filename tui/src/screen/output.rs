//! The last lines of the started command's output, over the body. The text comes from another
//! program, so control characters are removed.

use crate::action::Action;
use crate::app::App;
use crate::widgets::theme::Theme;
use crate::words::keys::key;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

/// Draws the output, ending `scroll` lines before its last line.
pub fn render(app: &App, scroll: usize, _theme: &Theme, frame: &mut Frame) {
    let all = frame.area();
    let area = Rect {
        y: 3,
        height: all.height.saturating_sub(3),
        ..all
    };
    let close = key(&app.context(), Action::Back).map(|key| format!(" {key} close "));
    let block = Block::bordered()
        .title(" Output of the command ")
        .title_bottom(close.unwrap_or_default());
    let inner = block.inner(area);
    Clear.render(area, frame.buffer_mut());
    block.render(area, frame.buffer_mut());
    let lines = &app.shown.run.command_output;
    let shown = usize::from(inner.height);
    // Scrolled up as far as possible, the first lines are shown and the pane is full.
    let end = lines
        .len()
        .saturating_sub(scroll)
        .max(shown)
        .min(lines.len());
    let start = end.saturating_sub(shown);
    let buffer = frame.buffer_mut();
    for (y, line) in (inner.y..inner.bottom()).zip(&lines[start..end]) {
        let line = line.replace('\t', "    ");
        let line = text::cut_end(&line, inner.width.into());
        buffer.set_stringn(inner.x, y, line, inner.width.into(), Style::new());
    }
    frame.set_cursor_position(Position::new(inner.x, inner.y));
}
