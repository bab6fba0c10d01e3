//! Rules that hold for every frame, whatever happened before it.

use crate::app::App;
use crate::app::mode::Mode;
use crate::geometry::ViewArea;
use crate::view_id::ViewId;
use crate::widgets::theme::{Palette, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};

/// Draws the app in a terminal of its own size, checks the frame, and returns its text.
pub fn frame(app: &App, theme: &Theme) -> String {
    let size = app.terminal.size;
    let mut terminal =
        Terminal::new(TestBackend::new(size.width, size.height)).expect("a test terminal");
    // Writing outside of a buffer's area panics.
    terminal
        .draw(|frame| super::draw(app, theme, frame))
        .expect("drawing into memory");
    let cursor = terminal.get_cursor_position().expect("a cursor");
    let buffer = terminal.backend().buffer();
    check_characters(buffer, theme);
    if app.geometry().is_some() {
        check_trust(app, buffer);
        check_cursor(app, buffer, cursor);
        check_view(app, buffer);
    }
    text(buffer)
}

/// Returns the lines of a frame, without the blanks at their ends.
pub fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        text.push_str(line(buffer, y).trim_end());
        text.push('\n');
    }
    text
}

fn line(buffer: &Buffer, y: u16) -> String {
    let start = buffer.index_of(buffer.area.left(), y);
    let mut line = String::with_capacity(buffer.area.width.into());
    let mut skip = 0;
    for cell in &buffer.content()[start..start + usize::from(buffer.area.width)] {
        let symbol = cell.symbol();
        if skip > 0 {
            skip -= 1;
            continue;
        }
        line.push_str(symbol);
        // Tests check millions of symbols, and nearly all of them are one byte long.
        if symbol.len() > 1 {
            skip = crate::words::text::width(symbol).saturating_sub(1);
        }
    }
    line
}

fn check_characters(buffer: &Buffer, theme: &Theme) {
    for cell in buffer.content() {
        let symbol = cell.symbol();
        // Tests check millions of symbols, and nearly all of them are one printable byte.
        if !matches!(symbol.as_bytes(), [b' '..=b'~']) {
            assert_eq!(
                symbol,
                crate::words::text::clean(symbol),
                "a control character"
            );
            if theme.is_ascii() {
                assert!(
                    symbol.bytes().all(|b| (0x20..=0x7e).contains(&b)),
                    "{symbol:?}"
                );
            }
        }
        check_colors(cell.fg, cell.bg, theme);
    }
    // The background belongs to the terminal.
    let cells = buffer.content();
    let painted = cells.iter().filter(|cell| cell.bg != Color::Reset).count();
    assert!(painted <= cells.len() * 19 / 20, "a painted screen");
}

/// Checks that a palette puts only its own colors into cells. Of the sixteen colors of a terminal
/// it never uses the bright ones, which may equal the background.
fn check_colors(fg: Color, bg: Color, theme: &Theme) {
    use Color::{Blue, Cyan, Green, Indexed, Magenta, Red, Reset, Yellow};
    let is_fixed = |color| matches!(color, Reset | Indexed(16..));
    let is_right = match theme.palette {
        Palette::Mono => (fg, bg) == (Reset, Reset),
        Palette::Sixteen => {
            let is_own = matches!(fg, Reset | Red | Green | Yellow | Blue | Magenta | Cyan);
            is_own && bg == Reset
        }
        Palette::Indexed => is_fixed(fg) && is_fixed(bg),
    };
    assert!(is_right, "{fg:?} on {bg:?} with {:?}", theme.palette);
}

/// Checks that the header has the number of samples and of lost ones, unless the help covers it.
fn check_trust(app: &App, buffer: &Buffer) {
    if matches!(app.mode, Mode::Help { .. }) {
        return;
    }
    let header = app.geometry().map_or(3, |geometry| geometry.header);
    let header = line(buffer, header - 1);
    let metric = crate::words::metric::metric_told(&app.context()).map(profile::Metric::per_second);
    let samples = crate::words::units::count(match metric {
        // Waiting time in milliseconds.
        Some(1..) => app.counted() / 1_000_000,
        Some(0) | None => app.counted(),
    });
    assert!(header.starts_with(&samples), "{header:?} lacks {samples}");
    let lost = format!("lost {}", crate::words::units::count(app.shown.health.lost));
    assert!(header.contains(&lost), "{header:?} lacks {lost:?}");
    if app.view == ViewId::Functions {
        assert!(header.contains("st"), "{header:?} lacks the stacks");
    }
}

/// Checks that the hardware cursor is on the row that is drawn as selected.
fn check_cursor(app: &App, buffer: &Buffer, cursor: Position) {
    let geometry = app.geometry().expect("a screen");
    if !matches!(app.mode, Mode::Browse) {
        return;
    }
    let body = geometry.body..geometry.body + geometry.body_height;
    assert!(body.contains(&cursor.y), "the cursor is at {cursor:?}");
    let parts = app.parts().expect("a screen");
    let beside = parts.pane.map(|(_, part)| part);
    let (here, there) = match app.in_pane() {
        Some(_) => (beside.expect("it has the keys"), Some(parts.view)),
        None => (parts.view, beside),
    };
    let reversed = |part: ViewArea| -> Vec<u16> {
        let is_reversed = |y: &u16| buffer[(part.x, *y)].modifier.contains(Modifier::REVERSED);
        let rows = part.body()..part.body() + part.height;
        rows.filter(is_reversed).collect()
    };
    if !reversed(here).is_empty() {
        assert_eq!(
            reversed(here),
            [cursor.y],
            "one selected row, and the cursor on it"
        );
        assert_eq!(buffer[(here.x, cursor.y)].symbol(), ">");
    }
    if let Some(there) = there {
        let there = reversed(there);
        assert!(there.is_empty(), "{there:?} selected where no key goes to");
    }
}

fn check_view(app: &App, buffer: &Buffer) {
    let geometry = app.geometry().expect("a screen");
    if let Some(y) = geometry.tabs
        && matches!(app.mode, Mode::Browse | Mode::Find(_))
    {
        let name = format!("{}]", app.view.short_name());
        assert!(line(buffer, y).contains(&name));
    }
}
