//! Draws the processes: how many CPUs each process or unit uses, and the function with most
//! samples.

use crate::calendar;
use crate::context::{Context, DetailRoom};
use crate::lists::groups::By;
use crate::lists::table::Table;
use crate::views::{Canvas, Draw};
use crate::widgets::{below, compared};
use crate::words::metric;
use crate::words::units;

use crate::knobs::Unit;
use crate::lists::people;
use crate::lists::table::{Item as _, Line};
use crate::views::people::{NOT_COUNTED, Person as _};
use crate::views::processes::ProcessColumn;
use crate::widgets::rest::Rest;
use crate::widgets::table::{Column, Row, STATES_HEAD};
use crate::widgets::theme::Theme;
use crate::widgets::{table, trend};
use crate::words::units::Scale;
use crate::words::{absence, names, person, states, text};
use engine::snapshot::Snapshot;
use profile::{ProcessRow, TREND_LEN};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// From this width on the user is shown; in a narrower terminal the command needs the room.
const WIDTH_WITH_USER: u16 = 60;

impl Draw for Table<ProcessRow> {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn head_at(&self, cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
        let columns = columns(cx, width, self.grouping(), theme);
        let column = table::column_at(&columns, width, x)?;
        ProcessRow::COLUMNS.iter().position(|each| *each == column)
    }

    fn detail(&self, cx: &Context<'_>, _: DetailRoom, _: &Theme) -> String {
        self.selected(&cx.shown.report)
            .map_or_else(String::new, |line| process(&line, cx))
    }
}

/// Draws the heads and the rows, and below them the sum of the rows out of sight, and what exists
/// only in the baseline.
fn render(processes: &Table<ProcessRow>, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let columns = columns(cx, heads.width, processes.grouping(), theme);
    // The position of the column with the name depends on the width.
    let is_command = |column: &Column<_>| column.sort == Some(ProcessColumn::Command);
    let name = columns.iter().position(is_command).unwrap_or(0);
    let report = &cx.shown.report;
    let sign = table::sort_sign(processes.is_rising(), cx.is_order_held);
    let sorted = (processes.column(), sign);
    table::render_heads(&columns, sorted, theme, frame, heads);
    let trend_max = report.peak_of_processes();
    let mut line = Rect { height: 1, ..body };
    for row in processes.lines(report) {
        let row = cells(&row, cx, &columns, trend_max, theme);
        table::render_row(&columns, &row, name, theme, frame, line);
        table::color_states(&columns, &row, theme, frame, line);
        line.y += 1;
    }
    if processes.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let rest =
        Rest::of(processes, report).map(|rest| rest.of_people(&Scale::new(cx, report.samples)));
    let people = cx.shown.comparison.people.as_ref();
    let gone = people.and_then(|people| compared::gone(&people.processes.gone, &people.sides));
    let idle = idle(cx);
    let below: Vec<String> = [rest, gone, idle].into_iter().flatten().collect();
    below::render(&below, theme, frame, body, line.y);
}

/// Returns the time in which CPUs were idle, as `idle 10.70 of 16 CPUs`; together with the rows it
/// adds up to the whole machine. Idle CPUs are not sampled, so it is the difference. Returns `None`
/// unless all CPU time of the machine is counted.
fn idle(cx: &Context<'_>) -> Option<String> {
    let (shown, knobs) = (cx.shown, cx.knobs);
    let is_whole = shown.run.is_of_whole_machine()
        && knobs.scope.is_empty()
        && knobs.filter.is_empty()
        && knobs.metric == 0
        && shown.comparison.people.is_none();
    let cpus = shown.source.host.cpus_sampled();
    if !is_whole || cpus == 0 || cx.counts_time() {
        return None;
    }
    let report = &shown.report;
    let busy = units::cpus(report.samples, report.rate_hz, report.window.seconds())?;
    let idle = (f64::from(cpus) - busy).max(0.0);
    // If samples were lost, the CPUs were busier than the samples show.
    let most = if shown.health.lost > 0 {
        "at most "
    } else {
        ""
    };
    Some(format!("idle {most}{idle:.2} of {cpus} CPUs"))
}

/// The head of the column with the machine.
pub const HOST_HEAD: &str = "HOST";

/// From this width on the number of threads is shown.
const WIDTH_WITH_MORE: u16 = 100;

/// From this width on the unit or container is shown as well.
const WIDTH_WITH_GROUP: u16 = 130;

/// The width in cells that command and top function need together to be distinguishable, including
/// the cells between them. The last seconds are shown only if this much room remains.
const NAMES_MIN: u16 = 30;

/// Returns the columns for a width in cells:
///
/// | from | columns |
/// | --- | --- |
/// | any | pid, machine if there are several, amount, command |
/// | [`WIDTH_WITH_USER`] | user, the kernel's share or a bar of states, the top function |
/// | [`NAMES_MIN`] left | last seconds |
/// | [`WIDTH_WITH_MORE`] | number of threads |
/// | [`WIDTH_WITH_GROUP`] | systemd unit or container |
///
/// In a comparison, change, baseline and certainty replace the kernel's share, the number of
/// threads and the last seconds, at any width. If processes are grouped by unit or machine, its
/// name replaces the command.
fn columns(
    cx: &Context<'_>,
    width: u16,
    grouping: Option<By>,
    theme: &Theme,
) -> Vec<Column<ProcessColumn>> {
    use ProcessColumn::{Command, Cpus, Kernel, Pid, Threads, User};
    let mut columns = vec![Column::right("PID", 7, Some(Pid))];
    let is_narrow = width < WIDTH_WITH_USER;
    let has_hosts = people::are_of_several_machines(&cx.shown.report);
    if has_hosts {
        columns.push(Column::left(HOST_HEAD, 10, None));
    }
    // If there are several machines, the machine is more useful than the user.
    if !is_narrow && (!has_hosts || width >= WIDTH_WITH_MORE) {
        columns.push(Column::left("USER", 8, Some(User)));
    }
    columns.push(Column::right(head(cx), 6, Some(Cpus)));
    let trend = TREND_LEN as u16 + 1;
    match compared::people_columns(cx, theme) {
        Some(compared) => columns.extend(compared),
        None => {
            if is_narrow {
                // There is no room for either column.
            } else if cx.counts_time() {
                let width = states::BAR_WIDTH as u16;
                columns.push(Column::left(STATES_HEAD, width, None));
            } else {
                columns.push(Column::right("KERN%", 6, Some(Kernel)));
            }
            if width >= WIDTH_WITH_MORE {
                columns.push(Column::right("THR", 5, Some(Threads)));
            }
            if table::rest(&columns, width) > trend + NAMES_MIN {
                columns.push(Column::right("LAST 10s", trend, None))
            } else {
                // An empty column, because the sign of the sort order must not touch the next head.
                columns.push(Column::left("", 0, None))
            }
        }
    }
    let room = table::rest(&columns, width).saturating_sub(2);
    // The name of the group replaces the command.
    let group_head = match grouping {
        Some(By::Unit) => Some("UNIT"),
        Some(By::Host) => Some("MACHINE"),
        Some(By::Command | By::Name) | None => None,
    };
    let is_by_unit = grouping == Some(By::Unit);
    let group = if width >= WIDTH_WITH_GROUP && !is_by_unit {
        20
    } else {
        0
    };
    let top = if is_narrow { 0 } else { (room * 2 / 5).min(28) };
    let command = room - group - top - u16::from(group > 0);
    let head = group_head.unwrap_or("COMMAND");
    columns.push(Column::left(head, command, Some(Command)));
    if group > 0 {
        columns.push(Column::left("UNIT", group, None));
    }
    columns.push(Column::left("TOP FUNCTION", top, None));
    columns
}

/// From this width on the column of functions also says what the function waited for.
const TOP_WITH_STATE: u16 = 20;

/// Returns a cell for each column. A column is recognized by what it sorts by, or else by its
/// title. The remaining ones are the columns of a comparison, in order.
fn cells(
    line: &Line<'_, ProcessRow>,
    cx: &Context<'_>,
    columns: &[Column<ProcessColumn>],
    trend_max: u64,
    theme: &Theme,
) -> Row {
    let process = line.row;
    let plain = Style::new();
    let pid = match line.count() {
        1 => number(process.pid, cx.shown),
        _ => "many".into(),
    };
    let who = name(line, cx, columns);
    let kernel = format!(
        "{:.0}",
        kernel_percent(process.kernel_samples, process.samples)
    );
    let name = process.top_function.as_deref().unwrap_or("-");
    let top = process.top_function.as_deref().map_or_else(
        || "-".to_owned(),
        |name| states::with_function(name, process.top_wait.as_deref()),
    );
    let style = if line.found { theme.found() } else { plain };
    let before = cx.shown.comparison.people.as_ref();
    let keys = line.row_keys().into_iter();
    let before = keys.map(|key| before.map_or(0, |people| people.processes.of(key)));
    let pair = (before.sum(), process.samples);
    // A row without samples is not counted now, so that the difference from A would not be a
    // change.
    let mut compared = compared::people_cells(cx, pair, theme)
        .filter(|_| !line.gone)
        .into_iter()
        .flatten();
    let user = process.details.user.as_deref().unwrap_or("-");
    let host = process.details.host.as_deref().unwrap_or("-");
    let group = process.details.cgroup.as_deref().and_then(person::group);
    let cell = |column: &Column<ProcessColumn>| match (column.title, column.sort) {
        (_, Some(ProcessColumn::Pid)) => (pid.clone(), plain),
        (_, Some(ProcessColumn::User)) => (text::cut_end(user, 8).into_owned(), plain),
        (_, Some(ProcessColumn::Cpus)) => (amount(process.samples, line.gone, cx), plain),
        (_, Some(ProcessColumn::Kernel)) if line.gone => (String::new(), plain),
        (_, Some(ProcessColumn::Kernel)) => (kernel.clone(), plain),
        (_, Some(ProcessColumn::Threads)) => (process.threads.to_string(), plain),
        (_, Some(ProcessColumn::Command)) => {
            (text::cut_end(&who, column.width.into()).into_owned(), style)
        }
        (STATES_HEAD, _) => {
            let activity = process.activity.as_ref().filter(|_| !line.gone);
            (activity.map_or_else(|| "-".into(), states::bar), plain)
        }
        ("", _) => (String::new(), plain),
        (HOST_HEAD, _) => (text::cut_middle(host, 10).into_owned(), plain),
        ("UNIT", _) => (group.clone().unwrap_or_default(), theme.dim()),
        ("LAST 10s", _) if !line.gone => (trend::blocks(&process.trend, trend_max), theme.trend()),
        ("LAST 10s", _) => (String::new(), plain),
        // A narrow column has room for the function only; the bar shows the states.
        ("TOP FUNCTION", _) if column.width < TOP_WITH_STATE => {
            (names::short(name).into_owned(), plain)
        }
        ("TOP FUNCTION", _) => (top.clone(), plain),
        _ => compared.next().unwrap_or_default(),
    };
    let cells = columns.iter().map(cell).collect();
    Row {
        cells,
        selected: line.selected,
        gone: line.gone,
    }
}

/// Returns the command of a row after its marks and guides. If processes are grouped, it returns
/// the name of the group and its number of processes.
fn name(
    line: &Line<'_, ProcessRow>,
    cx: &Context<'_>,
    columns: &[Column<ProcessColumn>],
) -> String {
    let is_command = |column: &&Column<_>| column.sort == Some(ProcessColumn::Command);
    let column = columns.iter().find(is_command);
    let marked = if line.marked { "+ " } else { "" };
    if let Some(column) = column {
        let room = usize::from(column.width).saturating_sub(marked.len());
        let by = match column.title {
            "UNIT" => Some(By::Unit),
            "MACHINE" => Some(By::Host),
            _ => None,
        };
        if let Some(by) = by {
            let name = person::counted(&line.row.group_name(by), line.count(), room);
            return format!("{marked}{name}");
        }
        if line.count() > 1 {
            let command = person::counted(person::short_command(line.row), line.count(), room);
            return format!("{marked}{command}");
        }
    }
    let mark = person::mark(line.row, cx.own_pid);
    let command = person::short_command(line.row);
    format!("{marked}{}{mark}{command}", line.guides)
}

/// Returns a pid or tid for the screen. It is `-` if the recording has no such numbers, because its
/// profile only numbers processes and threads itself.
pub fn number(number: u32, snapshot: &Snapshot) -> String {
    let recording = snapshot.source.recording.as_ref();
    if recording.is_some_and(|recording| recording.lacks.people || number == 0) {
        "-".into()
    } else {
        number.to_string()
    }
}

/// Returns samples in the present unit, or the sign for an absent number if the row is gone.
pub fn amount(samples: u64, gone: bool, cx: &Context<'_>) -> String {
    if gone {
        absence::word(cx).into()
    } else {
        Scale::new(cx, cx.shown.report.samples).text(samples)
    }
}

/// Returns the head of the column of amounts.
pub fn head(cx: &Context<'_>) -> &'static str {
    match cx.unit() {
        Unit::Share => "SHARE%",
        Unit::Machine => "MACH%",
        Unit::Samples => "SMP",
        Unit::CpuMs => "MS/S",
        Unit::Cpus => cx.cpus_head(),
    }
}

/// Returns the share of the samples that was taken in the kernel, in percent; 0 without samples.
pub fn kernel_percent(kernel: u64, samples: u64) -> f64 {
    kernel as f64 * 100.0 / samples.max(1) as f64
}

/// Returns `3,277 smp = 62.5% of scope ±1.3 pp`, or why the row has no samples any more.
pub fn share_of_scope(samples: u64, gone: bool, cx: &Context<'_>) -> String {
    let report = &cx.shown.report;
    if gone {
        return absence::sentence(cx, samples);
    }
    let (amount, share) = (
        metric::amount(cx, samples),
        units::share(report, samples, report.samples),
    );
    let share = format!("{amount} = {share}% of scope");
    // The uncertainty comes from the number of waits, not from their time.
    if cx.counts_time() {
        share
    } else {
        let band = units::band_text(report, samples, report.samples);
        format!("{share} {band} pp")
    }
}

/// Returns the detail line: `postgres[4121]   3,277 smp = 62.5% of scope ±1.3 pp   393 in the
/// kernel   /usr/lib/postgresql/16/bin/postgres -D /srv/pg   user postgres   …   parent 1`.
fn process(line: &Line<'_, ProcessRow>, cx: &Context<'_>) -> String {
    let process = line.row;
    let details = &process.details;
    let who = match line.count() {
        1 => format!("{}[{}]", process.comm, number(process.pid, cx.shown)),
        _ => line.words(),
    };
    if !process.is_counted() {
        let parent = details
            .parent
            .map_or(String::new(), |pid| format!("   parent {pid}"));
        return text::clean(&format!("{who} {NOT_COUNTED}{parent}")).into_owned();
    }
    let mut parts = vec![who, share_of_scope(process.samples, line.gone, cx)];
    if process.exited {
        parts.push("ended".into());
    }
    if cx.own_pid == Some(process.pid) {
        parts.push("this proftop".into());
    }
    match &process.activity {
        _ if line.gone => {}
        Some(activity) => {
            parts.push(states::sums_since(activity, cx));
            parts.extend(states::delays(activity));
        }
        // All waiting happens in the kernel.
        None if cx.counts_time() => {}
        None => {
            let kernel = metric::bare_amount(cx, process.kernel_samples);
            parts.push(format!("{kernel} in the kernel"));
        }
    }
    parts.extend(details.command_line.as_ref().map(|line| line.to_string()));
    parts.extend(details.host.as_ref().map(|host| format!("on {host}")));
    parts.extend(details.user.as_ref().map(|user| format!("user {user}")));
    parts.extend(details.cgroup.as_ref().map(|path| format!("cgroup {path}")));
    let started = details.started_unix_ms;
    parts.extend(
        started.map(|ms| format!("started {} {}", calendar::of_day(ms), calendar::zone(ms))),
    );
    parts.extend(details.parent.map(|pid| format!("parent {pid}")));
    text::clean(&parts.join("   ")).into_owned()
}
