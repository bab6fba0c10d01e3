//! The processes: how many CPUs each burns, and in which function most.

use crate::context::{Context, DetailRoom};
use crate::lists::table::Table;
use crate::views::{Canvas, Draw};
use crate::widgets::compared;
use crate::words::units;

use crate::knobs::Unit;
use crate::lists::table::{Item as _, Line};
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
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Which column is the command, from the right.
const COMMAND_FROM_END: usize = 2;

impl Draw for Table<ProcessRow> {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn head_at(&self, cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
        head_at(cx, width, theme, x)
    }

    fn detail(&self, cx: &Context<'_>, _: DetailRoom, _: &Theme) -> String {
        self.selected(&cx.shown.report)
            .map_or_else(String::new, |line| process(line.row, cx))
    }
}

fn render(processes: &Table<ProcessRow>, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let columns = columns(cx, heads.width, theme);
    let name = columns.len() - COMMAND_FROM_END;
    let report = &cx.shown.report;
    let sorted = (processes.column(), processes.is_rising());
    table::render_heads(&columns, sorted, theme, frame, heads);
    let counts = report.processes.iter().flat_map(|row| row.trend);
    let trend_max = counts.max().unwrap_or(0);
    let mut line = Rect { height: 1, ..body };
    for row in processes.lines(report) {
        let row = cells(&row, cx, &columns, trend_max, theme);
        table::render_row(&columns, &row, name, theme, frame, line);
        line.y += 1;
    }
    if processes.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let rest = Rest::of(processes, report).map(|rest| rest.sentence("of samples"));
    let people = cx.shown.people.as_ref();
    let gone = people.and_then(|people| compared::gone(&people.processes.gone, &people.sides));
    let below: Vec<String> = [rest, gone].into_iter().flatten().collect();
    if !below.is_empty() && line.y < body.bottom() {
        let room = usize::from(body.width.saturating_sub(2));
        let text = text::cut_end(&below.join("   "), room).into_owned();
        let buffer = frame.buffer_mut();
        buffer.set_string(body.x + 2, line.y, text, theme.dim());
    }
}

fn head_at(cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
    let column = table::column_at(&columns(cx, width, theme), width, x)?;
    ProcessRow::COLUMNS.iter().position(|each| *each == column)
}

fn columns(cx: &Context<'_>, width: u16, theme: &Theme) -> Vec<Column<ProcessColumn>> {
    use ProcessColumn::{Command, Cpus, Kernel, Pid, Threads};
    let mut columns = vec![
        Column::right("PID", 7, Some(Pid)),
        Column::right(head(cx), 6, Some(Cpus)),
    ];
    let compared = compared::people_columns(cx, theme);
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
    cx: &Context<'_>,
    columns: &[Column<ProcessColumn>],
    trend_max: u32,
    theme: &Theme,
) -> Row {
    let process = line.row;
    let command_width = usize::from(columns[columns.len() - COMMAND_FROM_END].width);
    let plain = Style::new();
    let mark = if process.pid == cx.own_pid {
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
        (number(process.pid, cx.shown), plain),
        (amount(process.samples, line.gone, cx), plain),
    ];
    let before = cx
        .shown
        .people
        .as_ref()
        .map(|people| people.processes.of(process.id));
    let pair = (before.unwrap_or(0), process.samples);
    let compared = compared::people_cells(cx, pair, theme);
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
pub fn amount(samples: u64, gone: bool, cx: &Context<'_>) -> String {
    match gone {
        true => "gone".into(),
        false => Scale::new(cx, cx.shown.report.samples).text(samples),
    }
}

/// The head above them.
pub fn head(cx: &Context<'_>) -> &'static str {
    match cx.unit() {
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

fn process(process: &ProcessRow, cx: &Context<'_>) -> String {
    let base = cx.shown.report.samples;
    format!(
        "{}[{}]   {} smp = {}% of scope {} pp   {} in the kernel{}",
        process.comm,
        number(process.pid, cx.shown),
        units::count(process.samples),
        units::share(&cx.shown.report, process.samples, base),
        units::band_text(&cx.shown.report, process.samples, base),
        units::count(process.kernel_samples),
        if process.exited { "   ended" } else { "" }
    )
}
