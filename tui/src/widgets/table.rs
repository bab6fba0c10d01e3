//! Columns and rows of tables. Widths depend only on the size of the terminal, never on the data,
//! so that nothing moves when the data changes.

use super::theme::Theme;
use crate::words::states::LETTERS;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// A column of a table. It is followed by one cell, which separates columns and shows the sign of
/// the sort order.
#[derive(Debug, Clone, Copy)]
pub struct Column<C> {
    pub title: &'static str,
    pub width: u16,
    pub align: Align,
    /// The sort order of this column, or `None` if the table cannot be sorted by it.
    pub sort: Option<C>,
}

/// The side of its column to which a cell is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A row that is ready to be drawn. It has as many cells as there are columns.
#[derive(Debug)]
pub struct Row {
    pub cells: Vec<(String, Style)>,
    pub selected: bool,
    /// Whether the row is not in the report any more, so that it is drawn dim.
    pub gone: bool,
}

impl<C> Column<C> {
    /// Creates a column that is aligned to the left; `width` is in cells.
    pub fn left(title: &'static str, width: u16, sort: Option<C>) -> Self {
        Column {
            title,
            width,
            align: Align::Left,
            sort,
        }
    }

    /// Creates a column that is aligned to the right; `width` is in cells.
    pub fn right(title: &'static str, width: u16, sort: Option<C>) -> Self {
        Column {
            title,
            width,
            align: Align::Right,
            sort,
        }
    }
}

/// The head of the column that shows a thread's states as a bar.
pub const STATES_HEAD: &str = "STATES";

/// Number of cells before the first column, for the sign of the selected row.
const MARGIN: u16 = 1;

/// Returns how many cells of `width` remain beside these columns.
pub fn rest<C>(columns: &[Column<C>], width: u16) -> u16 {
    let used: u16 = columns.iter().map(|column| column.width + 1).sum();
    width.saturating_sub(used + MARGIN)
}

/// Returns the sign after the head of the sort column. It is hollow while rows stay in place
/// although their numbers have changed, because the user is pressing keys.
pub fn sort_sign(is_rising: bool, is_held: bool) -> &'static str {
    match (is_rising, is_held) {
        (true, false) => "▲",
        (false, false) => "▼",
        (true, true) => "△",
        (false, true) => "▽",
    }
}

/// Draws the heads of columns. `sorted` is the sort column and the sign of its order.
pub fn render_heads<C: Copy + PartialEq>(
    columns: &[Column<C>],
    sorted: (C, &str),
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    let buffer = frame.buffer_mut();
    buffer.set_style(area, theme.heads());
    let (sort, sign) = sorted;
    for (x, column) in starts(columns, area) {
        let title = text::cut_end(column.title, column.width.into());
        let end = match column.align {
            Align::Left => x + text::width(&title) as u16,
            Align::Right => x + column.width,
        };
        let start = end - text::width(&title) as u16;
        buffer.set_stringn(start, area.y, &title, column.width.into(), theme.heads());
        if column.sort == Some(sort) && end < area.right() {
            buffer.set_string(end, area.y, sign, theme.heads());
        }
    }
}

/// Draws a row. If it is selected, the hardware cursor goes to its column `name`, where screen
/// readers look for it.
pub fn render_row<C>(
    columns: &[Column<C>],
    row: &Row,
    name: usize,
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    let buffer = frame.buffer_mut();
    let mut cursor = Position::new(area.x, area.y);
    for (at, ((x, column), (content, style))) in starts(columns, area).zip(&row.cells).enumerate() {
        let content = text::cut_middle(content, column.width.into());
        let x = match column.align {
            Align::Left => x,
            Align::Right => x + column.width - text::width(&content) as u16,
        };
        buffer.set_stringn(x, area.y, &content, column.width.into(), *style);
        if at == name {
            cursor.x = x.min(area.right().saturating_sub(1));
        }
    }
    if row.gone {
        buffer.set_style(area, theme.dim());
    }
    if row.selected {
        buffer.set_string(area.x, area.y, ">", Style::new());
        buffer.set_style(area, theme.selected());
        frame.set_cursor_position(cursor);
    }
}

/// Colors the bar of states in a row that was drawn, letter by letter. A selected row keeps its own
/// style.
pub fn color_states<C>(
    columns: &[Column<C>],
    row: &Row,
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    let bar = starts(columns, area).find(|(_, column)| column.title == STATES_HEAD);
    let Some((x, column)) = bar.filter(|_| !row.selected && !row.gone) else {
        return;
    };
    for x in x..x + column.width {
        let cell = &mut frame.buffer_mut()[(x, area.y)];
        let letter = cell.symbol().chars().next();
        let state = LETTERS.iter().position(|each| Some(*each) == letter);
        if let Some(state) = state {
            cell.set_style(theme.activity(state));
        }
    }
}

/// Returns the sort order of the column whose head is at `x`, or `None` if there is no head, or if
/// its column cannot be sorted by.
pub fn column_at<C: Copy>(columns: &[Column<C>], width: u16, x: u16) -> Option<C> {
    let area = Rect::new(0, 0, width, 1);
    let mut all = starts(columns, area);
    let (_, column) = all.find(|(start, column)| (*start..=start + column.width).contains(&x))?;
    column.sort
}

/// Returns where each column starts. Columns that do not fit into the area are left out.
fn starts<C>(columns: &[Column<C>], area: Rect) -> impl Iterator<Item = (u16, &Column<C>)> {
    let mut next = area.x + MARGIN;
    columns
        .iter()
        .map(move |column| {
            let x = next;
            next += column.width + 1;
            (x, column)
        })
        .filter(move |(x, column)| x + column.width <= area.right())
}
