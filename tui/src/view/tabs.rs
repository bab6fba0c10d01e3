//! The tab line: the views there are, the open one in brackets.

use super::theme::Theme;
use crate::screen::View;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

const HELP: &str = "? help";

pub fn render(open: View, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    let mut x = area.x;
    for view in View::ALL {
        let name = format!("{} {}", view.digit(), view.short_name());
        let (text, style) = if view == open {
            (format!("[{name}]"), theme.title())
        } else {
            (format!(" {name} "), Style::new())
        };
        buffer.set_string(x, area.y, text, style);
        x += view.tab_width();
    }
    let start = area.right() - HELP.len() as u16;
    buffer.set_string(start, area.y, HELP, theme.dim());
}
