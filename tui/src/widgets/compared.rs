//! Cells and columns that show the difference from a baseline.

use crate::context::Context;
use crate::widgets::table::Column;
use crate::widgets::theme::Theme;
use crate::words::units;
use profile::diff::Sides;
use ratatui::style::Style;

/// Returns the cell for a change, such as `▲ +212.0`, in the unit of the sides.
pub fn change_cell(change: f64, theme: &Theme) -> (String, Style) {
    let (sign, style) = sign(change, theme);
    (format!("{sign} {change:+.1}"), style)
}

/// Returns the sign for a change: up, down, or none.
pub fn sign(change: f64, theme: &Theme) -> (&'static str, Style) {
    match change {
        more if more > 0.0 => ("▲", theme.rising()),
        less if less < 0.0 => ("▼", theme.falling()),
        _ => (" ", Style::new()),
    }
}

/// Returns the cell that says whether a change is significant or may be chance.
pub fn sure_cell(cx: &Context<'_>, before: u64, now: u64) -> &'static str {
    let diff = cx.shown.comparison.functions.as_ref();
    if diff.is_some_and(|diff| diff.is_sure(before, now)) {
        "yes"
    } else {
        "~"
    }
}

/// Returns the head of the column of changes.
pub fn head(has_time: bool, theme: &Theme) -> &'static str {
    match (theme.is_ascii(), has_time) {
        (true, true) => "MORE MS/S",
        (true, false) => "MORE PP",
        (false, true) => "Δ MS/S",
        (false, false) => "Δ PP",
    }
}

/// Returns the columns of a comparison between number and name of a process or thread, or `None` if
/// nothing is compared.
pub fn people_columns<C>(cx: &Context<'_>, theme: &Theme) -> Option<[Column<C>; 3]> {
    let people = cx.shown.comparison.people.as_ref()?;
    Some([
        Column::right(head(people.sides.have_time(), theme), 9, None),
        Column::right("A", 8, None),
        Column::left("SURE", 4, None),
    ])
}

/// Returns the cells for the columns of [`people_columns`].
pub fn people_cells(
    cx: &Context<'_>,
    (before, now): (u64, u64),
    theme: &Theme,
) -> Option<[(String, Style); 3]> {
    let sides = &cx.shown.comparison.people.as_ref()?.sides;
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

/// Returns a sentence about rows that are gone, such as
/// `4 gone in B: nginx[12] 40.0, cc1[90] 3.1, sed[7] 2.0 and 1 more`, in the unit of the sides.
/// Returns `None` if there are none.
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
