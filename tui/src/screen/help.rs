//! The help, over everything: the view's keys, the meaning of words, and the keys that work
//! everywhere.

use crate::action::Action;
use crate::app::App;
use crate::dialogs::help::{COLUMN_WIDTH, HelpLine, columns, has_two_columns, line_count};
use crate::widgets::theme::Theme;
use crate::words::keys::key;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

/// Draws the help over the screen, without its first `scroll` lines.
pub fn render(app: &App, scroll: usize, theme: &Theme, frame: &mut Frame) {
    let area = frame.area();
    let width = area.width.min(2 * COLUMN_WIDTH as u16 + 4);
    let two = has_two_columns(area.width);
    let lines = line_count(&app.input.keymap, app.focus(), two);
    let height = area.height.min(lines as u16 + 2);
    let frame_area = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    let shown = usize::from(height.saturating_sub(2));
    // Number of lines below the last visible one.
    let more = lines.saturating_sub(scroll + shown);
    let close = key(&app.context(), Action::Back).map(|key| format!(" {key} close "));
    let page = key(&app.context(), Action::PageDown)
        .filter(|_| more > 0)
        .map(|key| format!("  {key}: {more} more lines "));
    let find = key(&app.context(), Action::Palette);
    let find = find.map(|key| format!(" {key} find an action "));
    let foot = close
        .into_iter()
        .chain(page)
        .chain(find)
        .collect::<String>();
    let block = Block::bordered()
        .title(format!(" Help: {} ", app.focus().name()))
        .title_bottom(foot);
    let inner = block.inner(frame_area);
    Clear.render(frame_area, frame.buffer_mut());
    block.render(frame_area, frame.buffer_mut());
    draw_columns(app, scroll, two, theme, frame, inner);
    frame.set_cursor_position(Position::new(inner.x, inner.y));
}

/// Draws the lines in two columns if there is room, else one column below the other.
fn draw_columns(
    app: &App,
    scroll: usize,
    two: bool,
    theme: &Theme,
    frame: &mut Frame,
    inner: Rect,
) {
    let [left, right] = columns(&app.input.keymap, app.focus(), theme.is_ascii());
    if two {
        let room = Rect {
            width: inner.width / 2,
            ..inner
        };
        draw(&left, scroll, theme, frame, room);
        let room = Rect {
            x: inner.x + inner.width / 2,
            ..room
        };
        draw(&right, scroll, theme, frame, room);
    } else {
        let all: Vec<HelpLine> = left.into_iter().chain(right).collect();
        draw(&all, scroll, theme, frame, inner);
    }
}

/// Draws the lines that fit, without the first `scroll` ones.
fn draw(lines: &[HelpLine], scroll: usize, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    for (y, line) in (area.y..area.bottom()).zip(lines.iter().skip(scroll)) {
        let style = if line.is_heading {
            theme.title()
        } else {
            Style::new()
        };
        buffer.set_stringn(area.x, y, &line.text, area.width.into(), style);
    }
}
