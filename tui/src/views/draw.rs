//! The trait that draws a view.

use crate::context::{Context, DetailRoom};
use crate::widgets::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;

/// What a view draws with: colors, the buffer of the terminal, and its part of the screen.
pub struct Canvas<'c, 'f> {
    pub theme: &'c Theme,
    pub frame: &'c mut Frame<'f>,
    /// The line above the body, for the heads of columns or a title.
    pub heads: Rect,
    pub body: Rect,
}

/// The drawing of a view. The behavior of the view is in [`super::View`].
pub trait Draw {
    /// Draws heads and body. It changes only the buffer of the terminal.
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>);

    /// Returns the number of the column whose head is in cell `x` of the line of heads, counted
    /// among the columns that can be sorted by. Returns `None` if there is no such head.
    fn head_at(&self, _cx: &Context<'_>, _width: u16, _theme: &Theme, _x: u16) -> Option<usize> {
        None
    }

    /// Returns the text of the detail line, about the selected row.
    fn detail(&self, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String;

    /// Returns the part of the detail line that names a place in source text, and the path of the
    /// file.
    fn source(&self, _cx: &Context<'_>) -> Option<(String, String)> {
        None
    }
}
