//! The threads: how many CPUs each burns, and in which function most.

use super::processes::{amount, head, kernel_percent};
use super::rest::Rest;
use super::table::{self, Column, Row};
use super::theme::Theme;
use super::{difference, text, trend};
use crate::app::App;
use crate::screen::table::{Item as _, Line};
use crate::screen::threads::ThreadColumn;
use profile::{TREND_LEN, ThreadRow};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

const NAME: usize = 2;

pub fn render(app: &App, theme: &Theme, frame: &mut Frame, heads: Rect, body: Rect) {
    let columns = columns(app, heads.width, theme);
    let threads = &app.views.threads;
    let report = &app.shown.report;
    let sorted = (threads.column(), threads.is_rising());
    table::render_heads(&columns, sorted, theme, frame, heads);
    let counts = report.threads.iter().flat_map(|row| row.trend);
    let trend_max = counts.max().unwrap_or(0);
    let mut line = Rect { height: 1, ..body };
    for row in threads.lines(report) {
        let row = cells(&row, app, trend_max, theme);
        table::render_row(&columns, &row, NAME, theme, frame, line);
        line.y += 1;
    }
    if threads.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let rest = Rest::of(threads, report).map(|rest| rest.sentence("of samples"));
    let people = app.shown.people.as_ref();
    let gone = people.and_then(|people| difference::gone(&people.threads.gone, &people.sides));
    let below: Vec<String> = [rest, gone].into_iter().flatten().collect();
    if !below.is_empty() && line.y < body.bottom() {
        let room = usize::from(body.width.saturating_sub(2));
        let text = text::cut_end(&below.join("   "), room).into_owned();
        let buffer = frame.buffer_mut();
        buffer.set_string(body.x + 2, line.y, text, theme.dim());
    }
}

pub fn head_at(app: &App, width: u16, theme: &Theme, x: u16) -> Option<usize> {
    let column = table::column_at(&columns(app, width, theme), width, x)?;
    ThreadRow::COLUMNS.iter().position(|each| *each == column)
}

fn columns(app: &App, width: u16, theme: &Theme) -> Vec<Column<ThreadColumn>> {
    use ThreadColumn::{Cpus, Kernel, Name, Pid, Tid};
    let mut columns = vec![
        Column::right("TID", 7, Some(Tid)),
        Column::right("PID", 8, Some(Pid)),
        Column::left("NAME", 16, Some(Name)),
        Column::right(head(app), 6, Some(Cpus)),
    ];
    let compared = difference::people_columns(app, theme);
    let is_compared = compared.is_some();
    match compared {
        Some(compared) => columns.extend(compared),
        None => columns.push(Column::right("KERN%", 6, Some(Kernel))),
    }
    let trend = TREND_LEN as u16;
    if table::rest(&columns, width) > 2 * trend && !is_compared {
        columns.push(Column::right("LAST 10s", trend + 1, None));
    }
    let room = table::rest(&columns, width).saturating_sub(1);
    columns.push(Column::left("TOP FUNCTION", room, None));
    columns
}

fn cells(line: &Line<'_, ThreadRow>, app: &App, trend_max: u32, theme: &Theme) -> Row {
    let thread = line.row;
    let plain = Style::new();
    let kernel = format!(
        "{:.0}",
        kernel_percent(thread.kernel_samples, thread.samples)
    );
    let top = thread.top_function.as_deref().unwrap_or("-");
    let style = if line.found { theme.found() } else { plain };
    let mut cells = vec![
        (thread.tid.to_string(), plain),
        (thread.pid.to_string(), plain),
        (
            format!("{}{}", if line.marked { "+ " } else { "" }, thread.comm),
            style,
        ),
        (amount(thread.samples, line.gone, app), plain),
    ];
    let key = (thread.process, thread.tid);
    let before = app
        .shown
        .people
        .as_ref()
        .map(|people| people.threads.of(key));
    let pair = (before.unwrap_or(0), thread.samples);
    match difference::people_cells(app, pair, theme) {
        Some(compared) => cells.extend(compared),
        None => cells.push((kernel, plain)),
    }
    if columns(app, app.size.width, theme).len() > cells.len() + 1 {
        cells.push((trend::blocks(&thread.trend, trend_max), theme.trend()));
    }
    cells.push((top.into(), plain));
    Row {
        cells,
        selected: line.selected,
        gone: line.gone,
    }
}
