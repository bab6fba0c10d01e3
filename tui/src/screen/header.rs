//! The header: machine and time, what is counted, and how reliable the numbers are. Its third line,
//! with the number of samples and of lost samples, is shown at any width.

use crate::app::{App, Crumb};
use crate::status::query::{BETWEEN, crumbs};
use crate::status::{place, query, trust};
use crate::widgets::theme::Theme;
use crate::words::fit::{Segment, fit};
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the header: three lines, or only the last one if there is room for only one.
pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width);
    if area.height == 1 {
        return render_base(app, theme, frame, area);
    }
    // Each line is fitted before it is drawn: segments take shorter forms, the least important
    // first, until the line fits. The gap is the same as for drawing.
    let (mut place, left) = place::segments(app);
    fit(&mut place, width, 2);
    let (mut query, scope) = query::segments(app);
    fit(&mut query, width, 3);
    draw(&place, left, 2, theme.title(), frame, area, 0);
    draw(&query, scope, 3, Style::new(), frame, area, 1);
    let last = Rect {
        y: area.y + 2,
        height: 1,
        ..area
    };
    render_base(app, theme, frame, last);
}

/// Draws the last line, which is always shown: what all numbers are shares of, and what is missing.
fn render_base(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let mut trust = trust::segments(app);
    fit(&mut trust, area.width.into(), 2);
    let whole_line = trust.len();
    draw(&trust, whole_line, 2, Style::new(), frame, area, 0);
    // The first two segments of this line are always the number of samples and of lost ones.
    if app.shown.health.lost > 0 {
        let x = text::width(trust[0].text()) as u16 + 2;
        let lost = Rect::new(x, area.y, text::width(trust[1].text()) as u16, 1).intersection(area);
        frame.buffer_mut().set_style(lost, theme.warning());
    }
}

/// Draws the first `left` segments at the left edge, and the others at the right edge.
fn draw(
    segments: &[Segment],
    left: usize,
    gap: usize,
    first: Style,
    frame: &mut Frame,
    area: Rect,
    line: u16,
) {
    let join = |segments: &[Segment]| {
        let texts: Vec<&str> = segments
            .iter()
            .map(Segment::text)
            .filter(|text| !text.is_empty())
            .collect();
        texts.join(&" ".repeat(gap))
    };
    let y = area.y + line;
    let buffer = frame.buffer_mut();
    // The right part is drawn first: if the line is too narrow for both, the more important left
    // part covers it.
    let right = join(&segments[left..]);
    let start = area.width.saturating_sub(text::width(&right) as u16);
    buffer.set_stringn(start, y, &right, area.width.into(), first);
    let room = usize::from(area.width);
    buffer.set_stringn(area.x, y, join(&segments[..left]), room, first);
}

/// Returns the step of the path at column `x`, or `None` where the path is cut.
pub fn crumb_at(app: &App, width: u16, x: u16) -> Option<Crumb> {
    let (mut segments, _) = query::segments(app);
    fit(&mut segments, width.into(), 3);
    let crumbs = crumbs(app);
    let words: Vec<&str> = crumbs.iter().map(|(_, words)| &**words).collect();
    // The scope is the first segment and starts at the left edge, so that a column of the screen is
    // a cell of its text. Only the cut in its middle has to be taken into account.
    let x = uncut(segments[0].text(), &words.join(BETWEEN), x.into())?;
    let mut start = 0;
    for (crumb, words) in &crumbs {
        let end = start + text::width(words);
        if (start..end).contains(&x) {
            return Some(*crumb);
        }
        start = end + text::width(BETWEEN);
    }
    None
}

/// Converts a cell of the shown text, which may be cut in the middle, to the cell of the whole
/// text. Returns `None` at the cut.
fn uncut(shown: &str, whole: &str, x: usize) -> Option<usize> {
    let same = |(a, b): &(char, char)| a == b;
    let pairs = shown.chars().zip(whole.chars());
    let before: String = pairs.take_while(same).map(|(c, _)| c).collect();
    let (shown_rest, whole_rest) = (&shown[before.len()..], &whole[before.len()..]);
    let pairs = shown_rest.chars().rev().zip(whole_rest.chars().rev());
    let after: String = pairs.take_while(same).map(|(c, _)| c).collect();
    let width = text::width(shown);
    match x {
        _ if x < text::width(&before) => Some(x),
        _ if x >= width => None,
        _ if width - x <= text::width(&after) => Some(x + text::width(whole) - width),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_cut_path_is_where_it_was() {
        let whole = "system › postgres[4121] › heap_getnext";
        for (shown, x, expected) in [
            (whole, 9, Some(9)),
            (whole, 40, None),
            ("system › post…heap_getnext", 0, Some(0)),
            ("system › post…heap_getnext", 12, Some(12)),
            ("system › post…heap_getnext", 13, None),
            ("system › post…heap_getnext", 14, Some(26)),
            ("system › post…heap_getnext", 25, Some(37)),
            ("… › heap_getnext", 4, Some(26)),
            ("… › heap_getnext", 16, None),
        ] {
            assert_eq!(uncut(shown, whole, x), expected, "{shown} {x}");
        }
    }
}
