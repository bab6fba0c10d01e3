//! The busiest processes, above the functions: these are the processes that the functions belong
//! to.

use crate::context::Context;
use crate::lists::people;
use crate::views::processes::draw::{HOST_HEAD, number};
use crate::widgets::theme::Theme;
use crate::words::{person, text, units};
use profile::ProcessRow;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Width of the column with the user or machine.
const USER_WIDTH: usize = 9;

/// Draws the processes below a line of heads.
pub fn render(cx: &Context<'_>, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    let room = usize::from(area.width);
    let heads = Rect { height: 1, ..area };
    buffer.set_style(heads, theme.heads());
    let head = if cx.counts_time() {
        cx.cpus_head()
    } else {
        "CPU"
    };
    let has_hosts = people::are_of_several_machines(&cx.shown.report);
    let whose = if has_hosts { HOST_HEAD } else { "USER" };
    let words = format!("{head:>7}     PID {whose:<USER_WIDTH$} COMMAND");
    buffer.set_stringn(area.x, area.y, words, room, theme.heads());
    let report = &cx.shown.report;
    let rows = report.processes.iter();
    for (row, y) in rows.zip(area.y + 1..area.bottom()) {
        let line = line(row, has_hosts, cx, room);
        let style = if row.exited {
            theme.dim()
        } else {
            Style::new()
        };
        buffer.set_stringn(area.x, y, line, room, style);
    }
}

/// Returns the line of a process: the CPUs it uses or its waiting threads, or its share if the rate
/// is not known; pid; user or, if there are several machines, machine; command.
fn line(row: &ProcessRow, has_hosts: bool, cx: &Context<'_>, room: usize) -> String {
    let report = &cx.shown.report;
    let seconds = report.window.seconds();
    let amount = match units::cpus(row.samples, cx.per_second(), seconds) {
        Some(cpus) => format!("{cpus:.2}"),
        None => format!("{}%", units::share(report, row.samples, report.samples)),
    };
    let details = &row.details;
    // If there are several machines, the machine is more useful than the user.
    let whose = if has_hosts {
        &details.host
    } else {
        &details.user
    };
    let whose = text::cut_end(whose.as_deref().unwrap_or("-"), USER_WIDTH);
    let pad = USER_WIDTH.saturating_sub(text::width(&whose));
    let pid = number(row.pid, cx.shown);
    let before = format!("{amount:>7} {pid:>7} {whose}{:pad$} ", "");
    let mark = person::mark(row, cx.own_pid);
    let left = room.saturating_sub(text::width(&before) + mark.len());
    let command = text::cut_end(person::short_command(row), left);
    format!("{before}{mark}{command}")
}
