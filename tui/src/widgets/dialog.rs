//! The frame of a dialog over the body: a box in the middle, below the header, with labels on the
//! left and their texts beside them.

use super::theme::Theme;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

const WIDTH_MAX: u16 = 80;

/// A dialog whose frame is drawn. It knows where its lines are and how they are written.
pub struct Dialog<'t> {
    pub theme: &'t Theme,
    /// The column at which texts start; labels are to the left of it.
    pub indent: u16,
    inner: Rect,
}

/// Returns the area of a dialog with this many lines, including its frame. It has fewer lines if
/// the screen has.
pub fn area(all: Rect, height: u16) -> Rect {
    let width = all.width.min(WIDTH_MAX);
    Rect {
        x: (all.width - width) / 2,
        y: 3,
        width,
        height: height.min(all.height.saturating_sub(3)),
    }
}

impl<'t> Dialog<'t> {
    /// Draws the frame, with a title at the top and the keys at the bottom.
    pub fn open(
        area: Rect,
        title: &str,
        keys: &str,
        indent: u16,
        theme: &'t Theme,
        frame: &mut Frame,
    ) -> Self {
        let block = Block::bordered().title(title).title_bottom(keys);
        let inner = block.inner(area);
        Clear.render(area, frame.buffer_mut());
        block.render(area, frame.buffer_mut());
        Dialog {
            theme,
            indent,
            inner,
        }
    }

    /// Returns the number of lines inside the frame.
    pub fn height(&self) -> u16 {
        self.inner.height
    }

    /// Returns the area of a line inside the frame, counted from 0. It is empty if the frame has no
    /// such line, so that nothing is drawn there.
    pub fn line(&self, number: u16) -> Rect {
        if number < self.inner.height {
            Rect {
                y: self.inner.y + number,
                height: 1,
                ..self.inner
            }
        } else {
            Rect {
                width: 0,
                height: 0,
                ..self.inner
            }
        }
    }

    /// Writes a label and the text beside it, which is cut at the edge.
    pub fn entry(&self, label: &str, words: &str, style: Style, frame: &mut Frame, line: Rect) {
        let buffer = frame.buffer_mut();
        let title = self.theme.title();
        let room = usize::from(line.width.saturating_sub(1));
        buffer.set_stringn(line.x + 1, line.y, label, room, title);
        let room = usize::from(line.width.saturating_sub(self.indent));
        let words = text::clean(words);
        let words = text::cut_end(&words, room);
        buffer.set_stringn(line.x + self.indent, line.y, words, room, style);
    }

    /// Writes a text on up to two lines, from line `first` on.
    pub fn remark(&self, label: &str, words: &str, style: Style, frame: &mut Frame, first: u16) {
        let room = usize::from(self.inner.width.saturating_sub(self.indent));
        let lines = text::wrap(words, room);
        for (number, words) in (0..2).zip(&lines) {
            let label = if number == 0 { label } else { "" };
            self.entry(label, words, style, frame, self.line(first + number));
        }
    }
}
