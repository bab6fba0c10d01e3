//! The lines below the rows of a table: sums of everything that has no row of its own.

use super::theme::Theme;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::Rect;

/// Draws texts from line `y` of the body on, each on a line of its own or, if there are too few
/// lines, all on one.
pub fn render(texts: &[String], theme: &Theme, frame: &mut Frame, body: Rect, y: u16) {
    let lines = usize::from(body.bottom().saturating_sub(y));
    if lines == 0 {
        return;
    }
    let joined = [texts.join("   ")];
    let texts = if texts.len() <= lines { texts } else { &joined };
    let room = usize::from(body.width.saturating_sub(2));
    let buffer = frame.buffer_mut();
    for (text, y) in texts.iter().zip(y..) {
        let text = text::cut_end(text, room);
        buffer.set_string(body.x + 2, y, text, theme.dim());
    }
}
