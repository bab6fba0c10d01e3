//! Draws the threads: how many CPUs each thread uses, or all threads of a process with the same
//! name, and the function with most samples.

use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};
use crate::widgets::{below, compared};
use crate::words::metric;
use crate::words::units::Scale;

use crate::lists::people;
use crate::lists::table::{Item as _, Line, Table};
use crate::views::processes::draw::{HOST_HEAD, amount, head, kernel_percent, share_of_scope};
use crate::views::threads::ThreadColumn;
use crate::widgets::rest::Rest;
use crate::widgets::table::{Column, Row, STATES_HEAD};
use crate::widgets::theme::Theme;
use crate::widgets::{table, trend};
use crate::words::{held, person, states, text};
use profile::{TREND_LEN, ThreadRow};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

impl Draw for Table<ThreadRow> {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn head_at(&self, cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
        head_at(cx, width, !cx.is_beside, theme, x)
    }

    fn detail(&self, cx: &Context<'_>, _: DetailRoom, _: &Theme) -> String {
        self.selected(&cx.shown.report)
            .map_or_else(String::new, |line| thread(&line, cx))
    }
}

/// Draws all threads or, beside the processes, the threads of the selected process.
fn render(threads: &Table<ThreadRow>, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    // Beside the processes, all threads belong to the selected one, whose row shows the pid.
    let has_process = !cx.is_beside;
    if cx.is_beside && threads.len() == 0 {
        let text = text::cut_end("no thread of it has samples", body.width.into());
        let buffer = frame.buffer_mut();
        buffer.set_string(body.x + 1, body.y, text, theme.dim());
    }
    let layout = Layout::new(cx, heads.width, has_process, theme);
    let columns = &layout.columns;
    let report = &cx.shown.report;
    let sign = table::sort_sign(threads.is_rising(), cx.is_order_held);
    let sorted = (threads.column(), sign);
    table::render_heads(columns, sorted, theme, frame, heads);
    // All rows share one scale, so that equally high blocks mean equally many samples.
    let trend_max = report.peak_of_threads();
    let mut line = Rect { height: 1, ..body };
    for row in threads.lines(report) {
        let row = layout.cells(&row, cx, trend_max, theme);
        table::render_row(columns, &row, layout.name, theme, frame, line);
        table::color_states(columns, &row, theme, frame, line);
        line.y += 1;
    }
    if threads.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let rest =
        Rest::of(threads, report).map(|rest| rest.of_people(&Scale::new(cx, report.samples)));
    let people = cx.shown.comparison.people.as_ref().filter(|_| has_process);
    let gone = people.and_then(|people| compared::gone(&people.threads.gone, &people.sides));
    let below: Vec<String> = [rest, gone].into_iter().flatten().collect();
    below::render(&below, theme, frame, body, line.y);
}

fn head_at(
    cx: &Context<'_>,
    width: u16,
    has_process: bool,
    theme: &Theme,
    x: u16,
) -> Option<usize> {
    let layout = Layout::new(cx, width, has_process, theme);
    let column = table::column_at(&layout.columns, width, x)?;
    ThreadRow::COLUMNS.iter().position(|each| *each == column)
}

/// From this width on more than CPUs and function is shown.
const WIDTH_WITH_MORE: u16 = 54;

/// From this width on names are shown as a whole: they have up to 15 bytes in the kernel.
const WIDTH_WITH_NAME: u16 = 50;

/// The columns that fit into a terminal of some width.
struct Layout {
    columns: Vec<Column<ThreadColumn>>,
    has_process: bool,
    /// Whether the machine of each thread is shown, because there are several.
    has_host: bool,
    /// The position of the column with the name.
    name: usize,
    has_trend: bool,
    /// Whether there is room for more than how much CPU time a thread uses, and where.
    has_more: bool,
}

impl Layout {
    /// Returns the columns for a width in cells. In a comparison, change, baseline and certainty
    /// replace the kernel's share and the last seconds. If waiting time is counted, a bar of states
    /// replaces the kernel's share. Below [`WIDTH_WITH_MORE`] none of these is shown.
    fn new(cx: &Context<'_>, width: u16, has_process: bool, theme: &Theme) -> Self {
        use ThreadColumn::{Cpus, Kernel, Name, Pid, Tid};
        let mut columns = vec![Column::right("TID", 7, Some(Tid))];
        if has_process {
            columns.push(Column::right("PID", 8, Some(Pid)));
        }
        let has_host = has_process && people::are_of_several_machines(&cx.shown.report);
        if has_host {
            columns.push(Column::left(HOST_HEAD, 10, None));
        }
        let name = columns.len();
        let is_narrow = has_process && width < WIDTH_WITH_NAME;
        let name_width = if is_narrow { 8 } else { 16 };
        columns.push(Column::left("NAME", name_width, Some(Name)));
        columns.push(Column::right(head(cx), 6, Some(Cpus)));
        let compared = compared::people_columns(cx, theme).filter(|_| width >= WIDTH_WITH_MORE);
        let is_compared = compared.is_some();
        let is_waiting = cx.counts_time();
        match compared {
            Some(compared) => columns.extend(compared),
            // An empty column, because the sign of the sort order must not touch the next head.
            None if width < WIDTH_WITH_MORE => columns.push(Column::left("", 0, None)),
            // All waiting happens in the kernel, so that its share would be 100%.
            None if is_waiting => {
                columns.push(Column::left(STATES_HEAD, states::BAR_WIDTH as u16, None));
            }
            None => columns.push(Column::right("KERN%", 6, Some(Kernel))),
        }
        let trend = TREND_LEN as u16;
        // The name of the function needs at least as many cells as the blocks.
        let needed = if is_waiting { 4 * trend } else { 2 * trend };
        let has_trend = table::rest(&columns, width) > needed && !is_compared;
        if has_trend {
            columns.push(Column::right("LAST 10s", trend + 1, None));
        }
        let room = table::rest(&columns, width).saturating_sub(1);
        columns.push(Column::left("TOP FUNCTION", room, None));
        Layout {
            columns,
            has_process,
            has_host,
            name,
            has_trend,
            has_more: width >= WIDTH_WITH_MORE,
        }
    }

    /// Returns the cells of a thread for the columns of this layout.
    fn cells(
        &self,
        line: &Line<'_, ThreadRow>,
        cx: &Context<'_>,
        trend_max: u64,
        theme: &Theme,
    ) -> Row {
        let thread = line.row;
        let plain = Style::new();
        let style = if line.found { theme.found() } else { plain };
        let mark = if line.marked { "+ " } else { "" };
        let tid = match line.count() {
            1 => thread.tid.to_string(),
            _ => "many".into(),
        };
        let mut cells = vec![(tid, plain)];
        if self.has_process {
            cells.push((thread.pid.to_string(), plain));
        }
        if self.has_host {
            let host = host(thread, cx).unwrap_or("-");
            cells.push((text::cut_middle(host, 10).into_owned(), plain));
        }
        let name_width = usize::from(self.columns[self.name].width);
        let room = name_width.saturating_sub(mark.len());
        let name = person::counted(&thread.comm, line.count(), room);
        cells.push((format!("{mark}{name}"), style));
        cells.push((amount(thread.samples, line.gone, cx), plain));
        let people = cx.shown.comparison.people.as_ref();
        let keys = line.row_keys();
        let before = keys
            .into_iter()
            .map(|key| people.map_or(0, |people| people.threads.of(key)));
        let pair = (before.sum(), thread.samples);
        match compared::people_cells(cx, pair, theme) {
            _ if !self.has_more => cells.push((String::new(), plain)),
            // A row without samples is not counted now, so that the difference from A would not be
            // a change.
            Some(compared) if line.gone => {
                cells.extend(compared.map(|(_, style)| (String::new(), style)));
            }
            Some(compared) => cells.extend(compared),
            None if cx.counts_time() => {
                let activity = thread.activity.as_ref().filter(|_| !line.gone);
                cells.push((activity.map_or_else(|| "-".into(), states::bar), plain));
            }
            None => {
                let kernel = kernel_percent(thread.kernel_samples, thread.samples);
                let kernel = if line.gone {
                    String::new()
                } else {
                    format!("{kernel:.0}")
                };
                cells.push((kernel, plain));
            }
        }
        if self.has_trend {
            let blocks = if line.gone {
                String::new()
            } else {
                trend::blocks(&thread.trend, trend_max)
            };
            cells.push((blocks, theme.trend()));
        }
        cells.push((top_function(thread, cx), plain));
        Row {
            cells,
            selected: line.selected,
            gone: line.gone,
        }
    }
}

/// Returns the machine of a thread in a profile of several machines, or `None` if it is not known.
fn host<'a>(thread: &ThreadRow, cx: &'a Context<'_>) -> Option<&'a str> {
    let mut processes = cx.shown.report.processes.iter();
    let process = processes.find(|row| row.id == thread.process)?;
    process.details.host.as_deref()
}

/// Returns what a thread did most or, if it only waited, what it waits for and since when.
fn top_function(thread: &ThreadRow, cx: &Context<'_>) -> String {
    let open = thread.activity.as_ref().filter(|_| thread.samples == 0);
    let waited = cx.shown.waited.as_deref();
    match (
        thread.top_function.as_deref(),
        open.and_then(|open| held::now(open, thread.tid, waited)),
    ) {
        (Some(name), _) => states::with_function(name, thread.top_wait.as_deref()),
        (None, Some(open)) => open,
        (None, None) => "-".into(),
    }
}

/// Returns the detail line: `postgres[4131] of 4121 1,036 smp = 31.6% of scope ±1.6 pp 393 in the
/// kernel`, or `12 threads postgres of 4121   …`.
fn thread(line: &Line<'_, ThreadRow>, cx: &Context<'_>) -> String {
    let thread = line.row;
    let (who, pid) = (line.words(), thread.pid);
    let share = share_of_scope(thread.samples, line.gone, cx);
    let mut parts = vec![match host(thread, cx) {
        Some(host) => format!("{who} of {pid} on {host}"),
        None => format!("{who} of {pid}"),
    }];
    match &thread.activity {
        _ if line.gone => parts.push(share),
        Some(activity) => {
            let waited = cx.shown.waited.as_deref();
            // A long wait that has not ended comes first: it is the most interesting part, and a
            // narrow screen cuts the end of the line.
            let is_long = activity
                .open_wait()
                .is_some_and(|wait| wait.for_ns >= held::LONG_NS);
            let now = is_long.then(|| held::now(activity, thread.tid, waited));
            parts.extend(now.flatten().map(|now| format!("now {now}")));
            parts.push(share);
            parts.push(states::sums_since(activity, cx));
            let one = waited.filter(|_| line.count() == 1);
            parts.extend(one.and_then(|waited| held::holders(thread.tid, waited)));
            parts.extend(states::delays(activity));
        }
        None if cx.counts_time() => parts.push(share),
        None => {
            let kernel = metric::bare_amount(cx, thread.kernel_samples);
            parts.push(share);
            parts.push(format!("{kernel} in the kernel"));
        }
    }
    parts.join("   ")
}
