//! The processes: how many CPUs each burns, and in which function most.

use crate::app::App;
use crate::knobs::Unit;
use crate::lists::table::{Item as _, Line};
use crate::views::functions::difference::draw as difference;
use crate::views::functions::draw::WIDTH_WITH_TREND;
use crate::views::processes::ProcessColumn;
use crate::widgets::rest::Rest;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::widgets::{table, trend};
use crate::words::text;
use crate::words::units::Scale;
use engine::snapshot::Snapshot;
use profile::{ProcessRow, TREND_LEN};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Which column is the command, from the right.
const COMMAND_FROM_END: usize = 2;

pub fn render(app: &App, theme: &Theme, frame: &mut Frame, heads: Rect, body: Rect) {
    let columns = columns(app, heads.width, theme);
    let name = columns.len() - COMMAND_FROM_END;
    let processes = &app.views.processes;
    let report = &app.shown.report;
    let sorted = (processes.column(), processes.is_rising());
    table::render_heads(&columns, sorted, theme, frame, heads);
    let counts = report.processes.iter().flat_map(|row| row.trend);
    let trend_max = counts.max().unwrap_or(0);
    let mut line = Rect { height: 1, ..body };
    for row in processes.lines(report) {
        let row = cells(&row, app, &columns, trend_max, theme);
        table::render_row(&columns, &row, name, theme, frame, line);
        line.y += 1;
    }
    if processes.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let rest = Rest::of(processes, report).map(|rest| rest.sentence("of samples"));
    let people = app.shown.people.as_ref();
    let gone = people.and_then(|people| difference::gone(&people.processes.gone, &people.sides));
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
    ProcessRow::COLUMNS.iter().position(|each| *each == column)
}

fn columns(app: &App, width: u16, theme: &Theme) -> Vec<Column<ProcessColumn>> {
    use ProcessColumn::{Command, Cpus, Kernel, Pid, Threads};
    let mut columns = vec![
        Column::right("PID", 7, Some(Pid)),
        Column::right(head(app), 6, Some(Cpus)),
    ];
    let compared = difference::people_columns(app, theme);
    let is_compared = compared.is_some();
    match compared {
        Some(compared) => columns.extend(compared),
        None => columns.extend([
            Column::right("KERN%", 6, Some(Kernel)),
            Column::right("THR", 5, Some(Threads)),
        ]),
    }
    if width >= WIDTH_WITH_TREND && !is_compared {
        columns.push(Column::right("LAST 10s", TREND_LEN as u16 + 1, None));
    }
    let room = table::rest(&columns, width).saturating_sub(2);
    // The kernel keeps 15 letters of a command's name; ours has a mark.
    let command = (room * 2 / 5).clamp(13, 24);
    columns.push(Column::left("COMMAND", command, Some(Command)));
    columns.push(Column::left("TOP FUNCTION", room - command, None));
    columns
}

fn cells(
    line: &Line<'_, ProcessRow>,
    app: &App,
    columns: &[Column<ProcessColumn>],
    trend_max: u32,
    theme: &Theme,
) -> Row {
    let process = line.row;
    let command_width = usize::from(columns[columns.len() - COMMAND_FROM_END].width);
    let plain = Style::new();
    let mark = if process.pid == app.own_pid {
        " (us)"
    } else if process.exited {
        " (ended)"
    } else {
        ""
    };
    let room = command_width.saturating_sub(mark.len() + if line.marked { 2 } else { 0 });
    let name = text::cut_middle(&process.comm, room);
    let name = format!("{}{name}{mark}", if line.marked { "+ " } else { "" });
    let kernel = format!(
        "{:.0}",
        kernel_percent(process.kernel_samples, process.samples)
    );
    let top = process.top_function.as_deref().unwrap_or("-");
    let style = if line.found { theme.found() } else { plain };
    let mut cells = vec![
        (number(process.pid, &app.shown), plain),
        (amount(process.samples, line.gone, app), plain),
    ];
    let before = app
        .shown
        .people
        .as_ref()
        .map(|people| people.processes.of(process.id));
    let pair = (before.unwrap_or(0), process.samples);
    let compared = difference::people_cells(app, pair, theme);
    match compared {
        Some(compared) => cells.extend(compared),
        None => cells.extend([(kernel, plain), (process.threads.to_string(), plain)]),
    }
    if columns.len() > cells.len() + 2 {
        cells.push((trend::blocks(&process.trend, trend_max), theme.trend()));
    }
    cells.extend([(name, style), (top.into(), plain)]);
    Row {
        cells,
        selected: line.selected,
        gone: line.gone,
    }
}

/// Of a process or thread; files without such numbers count them through.
pub fn number(number: u32, snapshot: &Snapshot) -> String {
    let recording = snapshot.recording.as_ref();
    match recording.is_some_and(|recording| recording.lacks.people || number == 0) {
        true => "-".into(),
        false => number.to_string(),
    }
}

/// Samples in the unit that is asked for.
pub fn amount(samples: u64, gone: bool, app: &App) -> String {
    match gone {
        true => "gone".into(),
        false => Scale::new(app, app.shown.report.samples).text(samples),
    }
}

/// The head above them.
pub fn head(app: &App) -> &'static str {
    match app.unit() {
        Unit::Share => "SHARE%",
        Unit::Machine => "MACH%",
        Unit::Samples => "SMP",
        Unit::CpuMs => "MS/S",
        Unit::Cpus => "CPUS",
    }
}

pub fn kernel_percent(kernel: u64, samples: u64) -> f64 {
    kernel as f64 * 100.0 / samples.max(1) as f64
}
