//! The detail line: details of the selected row, the explanation of a number, or a notice.

use crate::app::mode::Detail;
use crate::app::{App, DrawCost};
use crate::context::DetailRoom;
use crate::failure::without_numbers;
use crate::geometry::Geometry;
use crate::notice::Notice;
use crate::status;
use crate::widgets::theme::Theme;
use crate::words::{text, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget as _};
use std::time::Duration;

/// Returns a sentence about what the previous frame cost.
fn cost_of(cost: DrawCost) -> String {
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    format!(
        "frame {}: drawn in {}, {} bytes, written in {}",
        units::count(cost.frames),
        ms(cost.drawn_in),
        units::count(cost.bytes as u64),
        ms(cost.written_in),
    )
}

/// Draws the detail line. An explanation may also cover the line of keys below it.
pub fn render(app: &App, geometry: Geometry, theme: &Theme, frame: &mut Frame) {
    let width = usize::from(geometry.width);
    // In ASCII a row may have two `±`, each of which takes one more cell.
    let room = if theme.is_ascii() { width - 2 } else { width };
    let text = match &app.lines.detail {
        // Details of the row, unless the user wants to see what drawing costs.
        Detail::Row => match app.terminal.draw_cost {
            Some(cost) => cost_of(cost),
            None => {
                let pane = app.pane_here();
                let view = app
                    .part()
                    .map_or(app.terminal.size.width, |part| part.width);
                let drawn = app.views.drawn(pane);
                let detail = |line| {
                    let room = DetailRoom { line, view };
                    drawn.detail(&app.context_of(pane), room, theme)
                };
                match app.lines.detail_shift {
                    0 => detail(room),
                    // The line is scrolled, each step by half a width. The view writes the whole
                    // text for it, including the parts that it would leave out for lack of room.
                    shift => text::from(&detail(usize::MAX / 2), shift * width / 2),
                }
            }
        },
        Detail::Explain => {
            let pane = app.pane_here();
            let text = app.views.get(pane).explain(&app.context_of(pane));
            text.unwrap_or_else(|| "nothing is selected".into())
        }
        Detail::Notice(notice) => without_numbers(&status::notice(app, notice)).into_owned(),
    };
    let text = if theme.is_ascii() {
        text.replace('±', "+-")
    } else {
        text
    };
    let lines = match &app.lines.detail {
        // Only texts that have to be read as a whole may take several lines.
        Detail::Explain | Detail::Notice(Notice::MayFetch { .. }) => text::wrap(&text, width),
        _ => vec![text],
    };
    // A long explanation covers the line of keys, which comes back with the next key. A question
    // does not, because its keys have to stay visible.
    let last = match (&app.lines.detail, geometry.keys) {
        (Detail::Explain, Some(keys)) if lines.len() > 1 => keys,
        _ => geometry.detail,
    };
    render_lines(lines, last, geometry, theme, frame);
}

/// Draws lines that end on the line `last`, over as much of the body as they need. At least half of
/// the body stays visible. A text that is too long for that is cut and gets a sign.
fn render_lines(
    mut lines: Vec<String>,
    last: u16,
    geometry: Geometry,
    theme: &Theme,
    frame: &mut Frame,
) {
    let width = usize::from(geometry.width);
    // The lines from detail to `last`, and half of the body above them.
    let most = usize::from(last + 1 - geometry.detail + geometry.body_height / 2);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(line) = lines.last_mut() {
            line.push_str(" …");
        }
    }
    let first = last + 1 - lines.len() as u16;
    let buffer = frame.buffer_mut();
    // Two lines of an explanation fit into the lines of detail and keys. If there are more, a rule
    // shows where they begin.
    if first < geometry.detail && last > geometry.detail {
        let rule = Rect::new(0, first - 1, geometry.width, 1);
        Clear.render(rule, buffer);
        buffer.set_stringn(0, rule.y, "─".repeat(width), width, theme.dim());
    }
    for (y, line) in (first..).zip(&lines) {
        Clear.render(Rect::new(0, y, geometry.width, 1), buffer);
        buffer.set_stringn(0, y, text::cut_end(line, width), width, Style::new());
    }
}
