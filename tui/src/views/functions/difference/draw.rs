//! Draws the functions against a baseline: how much more or less time each takes, and whether that
//! may be chance. Everything that colors say is also said by a sign or a word.

use super::Difference;
use crate::geometry::WIDTH_WITH_MODULE;
use crate::views::Canvas;
use crate::widgets::compared::{change_cell, head};
use crate::widgets::table;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::words::compared::judgement;
use crate::words::metric::{amount_by, bare_amount_by};
use crate::words::{names, units};
use profile::Metric;
use profile::diff::{Diff, DiffRow, Side};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The column that this list is sorted by, the change, which is the only possible order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByChange;

/// The position of the column with the name if there is room for all columns.
const NAME: usize = 4;

/// Draws the heads and the rows of the difference, and below them the sum of the rows that did not
/// fit. In a narrow terminal only change, certainty and name are drawn.
pub fn render(list: &Difference, diff: &Diff, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let columns = columns(heads.width, theme, diff.sides().have_time());
    table::render_heads(
        &columns,
        (ByChange, table::sort_sign(false, false)),
        theme,
        frame,
        heads,
    );
    let shown = diff.rows.iter().enumerate().skip(list.offset());
    let mut line = Rect { height: 1, ..body };
    for (at, row) in shown.take(list.visible()) {
        let mut cells = cells(row, diff, theme);
        if heads.width < WIDTH_WITH_MODULE {
            // Change, certainty and name are kept.
            let kept = [0, 3, NAME].map(|at| std::mem::take(&mut cells[at]));
            cells = kept.into();
        }
        let row = Row {
            cells,
            selected: at == list.index(),
            gone: row.is_gone(),
        };
        let name = NAME.min(columns.len() - 1);
        table::render_row(&columns, &row, name, theme, frame, line);
        line.y += 1;
    }
    if diff.rows.is_empty() {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    // The rows that did not fit are those that changed least. Their signed changes are summed up.
    let below = diff
        .rows
        .len()
        .saturating_sub(list.offset() + list.visible());
    if below > 0 && line.y < body.bottom() {
        let rest = &diff.rows[list.offset() + list.visible()..];
        let sum: f64 = rest.iter().map(|row| change(diff, row)).sum();
        let text = format!("{sum:+.1}  in {} more", units::count(below as u64));
        let room = usize::from(body.width.saturating_sub(3));
        let buffer = frame.buffer_mut();
        buffer.set_stringn(body.x + 3, line.y, text, room, theme.dim());
    }
}

/// Returns the detail line: samples and time of the selected function on both sides.
pub fn detail(list: &Difference, diff: &Diff, metric: Option<&Metric>) -> String {
    let Some(row) = list.selected(diff) else {
        return String::new();
    };
    let words = if row.sure {
        "surely a change"
    } else {
        "could be chance"
    };
    // The same unit as in the columns: a share may fall although the time rises.
    let sides = diff.sides();
    let unit = if sides.have_time() { " ms/s" } else { "%" };
    let amount = |side: &Side, samples| format!("{:.1}", sides.amount(side, samples));
    format!(
        "self {} -> {} = {} -> {}{unit}; total {} -> {}{unit}   {words}",
        bare_amount_by(metric, row.a_self),
        amount_by(metric, row.b_self),
        amount(&diff.a, row.a_self),
        amount(&diff.b, row.b_self),
        amount(&diff.a, row.a_total),
        amount(&diff.b, row.b_total),
    )
}

/// Returns the sentence that says how the change of the selected function was judged.
pub fn explain(list: &Difference, diff: &Diff, metric: Option<&Metric>) -> String {
    match list.selected(diff) {
        Some(row) => judgement(
            &row.name,
            (row.a_self, row.b_self),
            row.chance,
            diff,
            metric,
        ),
        None => "nothing is selected".into(),
    }
}

/// Returns the columns for a width in cells. All numbers have the same unit as the change: ms per
/// second, or percent if a side has no time.
fn columns(width: u16, theme: &Theme, has_time: bool) -> Vec<Column<ByChange>> {
    let mut columns = vec![Column::right(head(has_time, theme), 9, Some(ByChange))];
    let has_all = width >= WIDTH_WITH_MODULE;
    if has_all {
        columns.push(Column::right("A", 8, None));
        columns.push(Column::right("B", 8, None));
    }
    columns.push(Column::left("SURE", 4, None));
    let room = table::rest(&columns, width).saturating_sub(2);
    let module = if has_all {
        (room * 3 / 10).clamp(12, 28).min(room)
    } else {
        0
    };
    columns.push(Column::left("FUNCTION", room - module, None));
    if has_all {
        columns.push(Column::left("MODULE", module, None));
    }
    columns
}

/// Returns by how much the self time of a function changed from A to B; negative if it became less.
fn change(diff: &Diff, row: &DiffRow) -> f64 {
    diff.sides().change(row.a_self, row.b_self)
}

/// Returns all cells of a row. A function that exists on one side only is marked by a sign and in
/// words, because colors may be missing.
fn cells(row: &DiffRow, diff: &Diff, theme: &Theme) -> Vec<(String, Style)> {
    let plain = Style::new();
    let sides = diff.sides();
    let sure = if row.sure { "yes" } else { "~" };
    let name = names::short(&row.name);
    let module = names::module(&row.module);
    // The words are in the module's column, where they do not shorten the name.
    let (name, module) = match (row.is_new(), row.is_gone()) {
        (true, _) => (format!("+ {name}"), format!("new, {module}")),
        (_, true) => (format!("- {name}"), format!("gone, {module}")),
        _ => (name.into_owned(), module.to_owned()),
    };
    vec![
        change_cell(change(diff, row), theme),
        (format!("{:.1}", sides.amount(&diff.a, row.a_self)), plain),
        (format!("{:.1}", sides.amount(&diff.b, row.b_self)), plain),
        (sure.into(), plain),
        (name, plain),
        (module, theme.dim()),
    ]
}
