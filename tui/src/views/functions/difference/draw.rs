//! The functions against a baseline: how much more or less time each takes, and
//! whether that could be chance. A sign and a word say what colors say.

use super::Difference;
use crate::context::Context;
use crate::views::Canvas;
use crate::widgets::table;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::words::units;
use profile::diff::{Diff, DiffRow, Side, Sides};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The only order there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByChange;

const NAME: usize = 4;

pub fn render(list: &Difference, diff: &Diff, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let columns = columns(heads.width, theme, diff.sides().have_time());
    table::render_heads(&columns, (ByChange, false), theme, frame, heads);
    let shown = diff.rows.iter().enumerate().skip(list.offset());
    let mut line = Rect { height: 1, ..body };
    for (at, row) in shown.take(list.visible()) {
        let cells = cells(row, diff, theme);
        let row = Row {
            cells,
            selected: at == list.index(),
            gone: row.is_gone(),
        };
        table::render_row(&columns, &row, NAME, theme, frame, line);
        line.y += 1;
    }
    if diff.rows.is_empty() {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
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

/// `A 3,277 smp (10 s)`, for the header.
pub fn baseline(diff: &Diff) -> String {
    format!(
        "A {} smp ({:.0} s)",
        units::count(diff.a.samples),
        diff.a.seconds
    )
}

/// The selected function on both sides.
pub fn detail(list: &Difference, diff: &Diff) -> String {
    let Some(row) = list.selected(diff) else {
        return String::new();
    };
    let share = |side: &Side, samples| units::percent(samples, side.samples);
    let words = match row.sure {
        true => "surely a change",
        false => "could be chance",
    };
    format!(
        "self {} -> {} smp = {}% -> {}%; total {}% -> {}%   {words}",
        units::count(row.a_self),
        units::count(row.b_self),
        share(&diff.a, row.a_self),
        share(&diff.b, row.b_self),
        share(&diff.a, row.a_total),
        share(&diff.b, row.b_total),
    )
}

/// How the change of the selected function was judged.
pub fn explain(list: &Difference, diff: &Diff) -> String {
    match list.selected(diff) {
        Some(row) => judgement(&row.name, (row.a_self, row.b_self), diff),
        None => "nothing is selected".into(),
    }
}

/// How the change of anything, from so many samples to so many, is judged.
pub fn judgement(name: &str, (before, now): (u64, u64), diff: &Diff) -> String {
    let words = match diff.is_sure(before, now) {
        true => "surely a change",
        false => "could be chance",
    };
    format!(
        "{name}: {} of {} samples in A, {} of {} in B; {words}: p = {:.1e} by the test of two proportions, corrected for {} functions",
        units::count(before),
        units::count(diff.a.samples),
        units::count(now),
        units::count(diff.b.samples),
        diff.chance(before, now),
        diff.rows.len(),
    )
}

/// `▲ +212.0`, in the unit of the sides.
pub fn change_cell(change: f64, theme: &Theme) -> (String, Style) {
    let (sign, style) = sign(change, theme);
    (format!("{sign} {change:+.1}"), style)
}

/// Up, down, or neither.
pub fn sign(change: f64, theme: &Theme) -> (&'static str, Style) {
    match change {
        more if more > 0.0 => ("▲", theme.rising()),
        less if less < 0.0 => ("▼", theme.falling()),
        _ => (" ", Style::new()),
    }
}

/// Whether what changed so much may have done so by chance.
pub fn sure_cell(cx: &Context<'_>, before: u64, now: u64) -> &'static str {
    let diff = cx.shown.difference.as_ref();
    match diff.is_some_and(|diff| diff.is_sure(before, now)) {
        true => "yes",
        false => "~",
    }
}

/// What the column of changes is called.
pub fn head(has_time: bool, theme: &Theme) -> &'static str {
    match (theme.is_ascii(), has_time) {
        (true, true) => "MORE MS/S",
        (true, false) => "MORE PP",
        (false, true) => "Δ MS/S",
        (false, false) => "Δ PP",
    }
}

/// What stands between the number and the name of a process or thread.
pub fn people_columns<C>(cx: &Context<'_>, theme: &Theme) -> Option<[Column<C>; 3]> {
    let people = cx.shown.people.as_ref()?;
    Some([
        Column::right(head(people.sides.have_time(), theme), 9, None),
        Column::right("A", 8, None),
        Column::left("SURE", 4, None),
    ])
}

/// The cells of these columns.
pub fn people_cells(
    cx: &Context<'_>,
    (before, now): (u64, u64),
    theme: &Theme,
) -> Option<[(String, Style); 3]> {
    let sides = &cx.shown.people.as_ref()?.sides;
    let plain = Style::new();
    let was = match before {
        0 => "new".into(),
        before => format!("{:.1}", sides.amount(&sides.a, before)),
    };
    Some([
        change_cell(sides.change(before, now), theme),
        (was, plain),
        (sure_cell(cx, before, now).into(), plain),
    ])
}

/// `3 gone in B: nginx[12] 40.0, cc1[90] 3.1 and 1 more`, in the unit of the sides.
pub fn gone(gone: &[(String, u64)], sides: &Sides) -> Option<String> {
    const NAMED: usize = 3;
    let named = gone.iter().take(NAMED);
    let names: Vec<String> = named
        .map(|(words, samples)| format!("{words} {:.1}", sides.amount(&sides.a, *samples)))
        .collect();
    let more = match gone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {} more", units::count(more as u64)),
    };
    let count = units::count(gone.len() as u64);
    (!gone.is_empty()).then(|| format!("{count} gone in B: {}{more}", names.join(", ")))
}

fn columns(width: u16, theme: &Theme, has_time: bool) -> Vec<Column<ByChange>> {
    let mut columns = vec![
        Column::right(head(has_time, theme), 9, Some(ByChange)),
        Column::right("A", 8, None),
        Column::right("B", 8, None),
        Column::left("SURE", 4, None),
    ];
    let room = table::rest(&columns, width).saturating_sub(2);
    let module = (room * 3 / 10).clamp(12, 28);
    columns.push(Column::left("FUNCTION", room - module, None));
    columns.push(Column::left("MODULE", module, None));
    columns
}

fn change(diff: &Diff, row: &DiffRow) -> f64 {
    diff.sides().change(row.a_self, row.b_self)
}

fn cells(row: &DiffRow, diff: &Diff, theme: &Theme) -> Vec<(String, Style)> {
    let plain = Style::new();
    let sides = diff.sides();
    let sure = if row.sure { "yes" } else { "~" };
    let name = match (row.is_new(), row.is_gone()) {
        (true, _) => format!("+ {} (new in B)", row.name),
        (_, true) => format!("- {} (gone in B)", row.name),
        _ => row.name.to_string(),
    };
    vec![
        change_cell(change(diff, row), theme),
        (format!("{:.1}", sides.amount(&diff.a, row.a_self)), plain),
        (format!("{:.1}", sides.amount(&diff.b, row.b_self)), plain),
        (sure.into(), plain),
        (name, plain),
        (row.module.to_string(), theme.dim()),
    ]
}
