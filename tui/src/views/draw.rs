//! How a view is drawn.

use crate::context::{Context, DetailRoom};
use crate::widgets::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;

/// Where and how a view is drawn.
pub struct Canvas<'c, 'f> {
    pub theme: &'c Theme,
    pub frame: &'c mut Frame<'f>,
    /// The line of heads.
    pub heads: Rect,
    pub body: Rect,
}

/// A view as it is drawn.
pub trait Draw {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>);

    /// Which of the columns to sort by has its head in that cell.
    fn head_at(&self, _cx: &Context<'_>, _width: u16, _theme: &Theme, _x: u16) -> Option<usize> {
        None
    }

    /// The line on what is selected.
    fn detail(&self, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String;

    /// The words of the detail line that lead to source text, and the path to it.
    fn source(&self, _cx: &Context<'_>) -> Option<(String, String)> {
        None
    }
}
