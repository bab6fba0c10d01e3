//! How a view is drawn.

use crate::context::{Context, DetailRoom};
use crate::widgets::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;

/// What a view needs to draw itself: colors, the buffer of the terminal, and its part of the
/// screen.
pub struct Canvas<'c, 'f> {
    pub theme: &'c Theme,
    pub frame: &'c mut Frame<'f>,
    /// The line above the body, for the heads of columns or a title.
    pub heads: Rect,
    pub body: Rect,
}

/// The drawing of a view, apart from its behaviour, which is [`super::View`].
pub trait Draw {
    /// Draws heads and body. It changes nothing but the buffer of the terminal.
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>);

    /// The number of the column whose head is drawn in cell `x` of the line of heads, among the
    /// columns that can be sorted by; None if there is no such head.
    fn head_at(&self, _cx: &Context<'_>, _width: u16, _theme: &Theme, _x: u16) -> Option<usize> {
        None
    }

    /// The text of the detail line, about the selected row.
    fn detail(&self, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String;

    /// The words of the detail line that lead to source text, and the path to it.
    fn source(&self, _cx: &Context<'_>) -> Option<(String, String)> {
        None
    }
}
