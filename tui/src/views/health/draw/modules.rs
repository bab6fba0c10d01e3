//! Draws the modules in which something is missing, and the seconds in which samples were lost,
//! beside the lines of Health.

use crate::calendar;
use crate::context::Context;
use crate::views::health::{ModuleRow, lost_by_cpu, modules};
use crate::widgets::table;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::words::units;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Maximum number of seconds that are listed.
const LOSSES_MAX: usize = 5;

/// Draws the modules of the window with what they lack, most samples first, and at the bottom the
/// seconds in which samples were lost.
pub fn render(cx: &Context<'_>, theme: &Theme, frame: &mut Frame, heads: Rect, body: Rect) {
    let columns = columns(heads.width);
    // Nothing is selected here, and nothing can be sorted.
    table::render_heads(&columns, ((), ""), theme, frame, heads);
    let losses = losses(cx);
    let room = usize::from(body.height).saturating_sub(losses.len());
    let rows = modules(cx.shown);
    // If there is not enough room for all, the last line sums up the others.
    let shown = if rows.len() > room {
        room.saturating_sub(1)
    } else {
        rows.len()
    };
    let mut line = Rect { height: 1, ..body };
    for row in &rows[..shown] {
        let row = Row {
            cells: cells(row, cx, theme),
            selected: false,
            gone: false,
        };
        table::render_row(&columns, &row, MODULE, theme, frame, line);
        line.y += 1;
    }
    if let Some(rest) = rows.get(shown..).filter(|rest| !rest.is_empty()) {
        let samples = rest.iter().map(|row| row.samples).sum();
        let text = format!(
            "{:>7}  in {} more",
            units::share(&cx.shown.report, samples, cx.shown.report.samples),
            units::count(rest.len() as u64)
        );
        say(&text, theme.dim(), frame, line);
        line.y += 1;
    }
    // The losses are always at the bottom.
    line.y = body.bottom() - losses.len() as u16;
    for (number, text) in losses.iter().enumerate() {
        let style = if number == 0 {
            theme.title()
        } else {
            Style::new()
        };
        say(text, style, frame, line);
        line.y += 1;
    }
}

/// Writes one line of text.
fn say(text: &str, style: Style, frame: &mut Frame, line: Rect) {
    let room = usize::from(line.width);
    frame
        .buffer_mut()
        .set_stringn(line.x, line.y, text, room, style);
}

/// The position of the column with the module.
const MODULE: usize = 4;

/// Returns the columns: share of all samples on top of stacks, how much of that has names, number
/// of functions, number of stacks cut here, the module, and where its names come from or why there
/// are none.
fn columns(width: u16) -> Vec<Column<()>> {
    let mut columns = vec![
        Column::right("SELF%", 6, None),
        Column::right("NAMED%", 6, None),
        Column::right("FUNC", 5, None),
        Column::right("CUT", 7, None),
    ];
    let room = table::rest(&columns, width).saturating_sub(2);
    let why = (room / 3).max(18).min(room / 2);
    columns.push(Column::left("MODULE", room - why, None));
    columns.push(Column::left("FROM, OR WHY", why, None));
    columns
}

/// Returns the cells of a module. The cell of cut stacks is empty if there are none.
fn cells(row: &ModuleRow, cx: &Context<'_>, theme: &Theme) -> Vec<(String, Style)> {
    let plain = Style::new();
    let some = |count: u64| match count {
        0 => String::new(),
        count => units::count(count),
    };
    let why = match row.reason {
        Some(reason) => reason.label().replace('_', " "),
        None if row.named < row.samples => "on its way".into(),
        None => match row.from {
            Some(from) if from.has_lines => format!("{}, lines", from.label()),
            Some(from) => from.label().into(),
            None => String::new(),
        },
    };
    let is_missing = row.reason.is_some();
    let named = match row.samples {
        0 => "-".into(),
        samples => units::completeness_in(&cx.shown.report, row.named, samples),
    };
    let style = if is_missing { theme.warning() } else { plain };
    vec![
        (
            units::share(&cx.shown.report, row.samples, cx.shown.report.samples),
            plain,
        ),
        (named, style),
        (units::count(row.functions as u64), plain),
        (some(row.cut), plain),
        (row.module.to_string(), plain),
        (why, style),
    ]
}

/// Returns lines about the last seconds in which samples were lost, with a heading. Empty if none
/// were lost.
fn losses(cx: &Context<'_>) -> Vec<String> {
    let Some(losses) = &cx.shown.run.losses else {
        return Vec::new();
    };
    let epoch_ms = cx
        .shown
        .view
        .as_ref()
        .map_or(0, |view| view.info().epoch_unix_ms);
    // The newest come first. Older ones are only counted.
    let mut seconds = losses.by_second();
    let earlier = seconds.len().saturating_sub(LOSSES_MAX);
    let mut lines: Vec<String> = seconds
        .split_off(earlier)
        .into_iter()
        .rev()
        .map(|(second, lost)| {
            let at_ms = (second * 1_000) as i64 + epoch_ms;
            let (at, zone) = (calendar::of_day(at_ms), calendar::zone(at_ms));
            format!("  {at} {zone}  {} lost", units::counted(lost, "sample"))
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    if earlier > 0 {
        let count = units::counted(earlier as u64, "second");
        lines.push(format!("  and in {count} before"));
    }
    lines.insert(
        0,
        match lost_by_cpu(losses) {
            by_cpu if by_cpu.is_empty() => " LOST in this run".into(),
            by_cpu => format!(" LOST in this run: {by_cpu}"),
        },
    );
    lines
}
