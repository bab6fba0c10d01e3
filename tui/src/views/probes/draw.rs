//! Draws the list of probes, and details about the selected one.

use super::shares::{Bucket, histogram, sections};
use super::{Probes, words};
use crate::action::Action;
use crate::context::{Context, DetailRoom};
use crate::view_id::ViewId;
use crate::views::{Canvas, Draw};
use crate::widgets::theme::Theme;
use crate::widgets::trend;
use crate::words::{text, units};
use engine::probes::{Latency, Probe, Seen, Stage, TREND_MAX};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// From this width on the list shows the last seconds.
const WIDTH_WITH_TREND: u16 = 72;
/// From this width on it shows more seconds and more quantiles.
const WIDTH_WIDE: u16 = 110;

/// Number of seconds in the list.
const TREND: usize = 12;
/// Number of seconds in a wide list.
const TREND_WIDE: usize = 30;

/// The width of the histogram in cells.
const HISTOGRAM: u16 = 38;
/// Its width in a wide terminal.
const HISTOGRAM_WIDE: u16 = 52;

impl Draw for Probes {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        let Canvas {
            theme,
            frame,
            heads,
            body,
        } = canvas;
        let buffer = frame.buffer_mut();
        buffer.set_style(heads, theme.heads());
        let line = heads_line(heads.width);
        buffer.set_stringn(heads.x, heads.y, line, heads.width.into(), theme.heads());
        // `None` if there are no probes, and for a moment after the selected one has left the list.
        let Some(selected) = self.selected(cx.shown) else {
            return render_none(cx, theme, frame, body);
        };
        let list = &cx.shown.probes.list;
        let trends = list.iter().filter_map(|probe| probe.seen.as_ref());
        // All probes share one scale, so that equally high blocks mean equally many calls.
        let max = trends.flat_map(|seen| seen.trend.iter().copied()).max();
        let rows = list
            .iter()
            .enumerate()
            .skip(self.cursor.offset())
            .take(self.list_height());
        let mut line = Rect { height: 1, ..body };
        for (at, probe) in rows {
            let is_selected = at == self.cursor.index();
            render_row(probe, max.unwrap_or(0), is_selected, theme, frame, line);
            line.y += 1;
        }
        let below = Rect {
            y: line.y,
            height: body.bottom().saturating_sub(line.y),
            ..body
        };
        render_detail(cx, selected, theme, frame, below);
    }

    fn detail(&self, cx: &Context<'_>, _: DetailRoom, _: &Theme) -> String {
        let selected = self.selected(cx.shown);
        selected.map_or_else(String::new, |probe| words::detail(cx, probe))
    }
}

/// Draws how to place a probe, if there is none.
fn render_none(cx: &Context<'_>, theme: &Theme, frame: &mut Frame, body: Rect) {
    // These are the keys of the views in which a function can be selected, not the keys of this
    // view.
    let key = cx.keymap.label(Action::Probe, ViewId::Functions);
    let keys = [ViewId::Tree, ViewId::Flame].map(|view| cx.keymap.label(Action::Probe, view));
    let palette = cx.key(Action::Palette);
    let mut lines = vec!["no function is probed".to_owned(), String::new()];
    if let Some(key) = key {
        let elsewhere = match keys.into_iter().flatten().next() {
            Some(other) => format!(" ({other} in the tree and the flame graph)"),
            None => String::new(),
        };
        lines.push(format!(
            "{key} on a function{elsewhere} counts and times its calls"
        ));
    }
    if let Some(key) = palette {
        lines.push(format!(
            "{key}probe NAME does it for a function that has no samples, and for markers and"
        ));
        lines.push("tracepoints: usdt:PROVIDER:NAME, tracepoint:NAME; Tab completes".to_owned());
    }
    lines.push("a probe costs what its row says, and goes by itself after 60 s".to_owned());
    if cx.shown.source.recording.is_some() {
        lines = vec!["this recording has no probes".to_owned()];
    }
    if let Some(word) = &cx.shown.probes.word {
        lines.extend([String::new(), format!("last: {}", word.sentence)]);
    }
    let room = usize::from(body.width.saturating_sub(2));
    let buffer = frame.buffer_mut();
    for (line, y) in lines.iter().zip(body.y..body.bottom()) {
        let line = text::cut_end(line, room);
        buffer.set_stringn(body.x + 2, y, &*line, room, theme.dim());
    }
    frame.set_cursor_position(Position::new(body.x, body.y));
}

/// The columns before the name of the function.
#[derive(Debug, Clone, Copy)]
enum Column {
    Rate,
    /// Calls in each of the last seconds. The number says how many seconds.
    Trend(usize),
    P50,
    P90,
    P99,
    Max,
    OnCpu,
    Cost,
    Left,
}

/// Returns the columns with their widths in cells. Texts are aligned to the right, so that the
/// blanks before them separate the columns.
fn columns(width: u16) -> Vec<(Column, usize)> {
    use Column::{Cost, Left, Max, OnCpu, P50, P90, P99, Rate, Trend};
    let mut columns = vec![(Rate, 10)];
    match width {
        WIDTH_WIDE.. => columns.push((Trend(TREND_WIDE), TREND_WIDE + 1)),
        WIDTH_WITH_TREND..WIDTH_WIDE => columns.push((Trend(TREND), TREND + 1)),
        _ => {}
    }
    columns.push((P50, 7));
    if width >= WIDTH_WIDE {
        columns.push((P90, 7));
    }
    columns.push((P99, 7));
    if width >= WIDTH_WIDE {
        columns.push((Max, 7));
    }
    columns.extend([(OnCpu, 7), (Cost, 7), (Left, 5)]);
    columns
}

impl Column {
    fn head(self) -> String {
        match self {
            Column::Rate => "CALLS/S".into(),
            Column::Trend(seconds) => format!("LAST {seconds}s"),
            Column::P50 => "P50".into(),
            Column::P90 => "P90".into(),
            Column::P99 => "P99".into(),
            Column::Max => "MAX".into(),
            Column::OnCpu => "ON-CPU".into(),
            Column::Cost => "COST".into(),
            Column::Left => "LEFT".into(),
        }
    }

    /// Returns the text of the column for a probe. `max` is the largest number of calls in a second
    /// of any probe, for which a full block is drawn.
    fn text(self, probe: &Probe, max: u32) -> String {
        // Nothing was counted yet: the breakpoint is not in place, or never was.
        let Some(seen) = &probe.seen else {
            return match self {
                Column::Left => words::left(probe),
                Column::Trend(_) => String::new(),
                _ => "-".into(),
            };
        };
        let latency = seen.latency.as_ref();
        let time =
            |of: fn(&Latency) -> u64| latency.map_or("-".into(), |l| units::nanoseconds(of(l)));
        match self {
            // A probe that is gone keeps the numbers that it had last, but has no rate.
            Column::Rate if matches!(probe.stage, Stage::InPlace { .. } | Stage::Recorded(_)) => {
                words::rate(seen.calls_per_second)
            }
            Column::Rate => "-".into(),
            Column::Trend(seconds) => last_seconds(seen, seconds, max),
            Column::P50 => time(|latency| latency.p50_ns),
            Column::P90 => time(|latency| latency.p90_ns),
            Column::P99 => time(|latency| latency.p99_ns),
            Column::Max => time(|latency| latency.max_ns),
            Column::OnCpu => words::on_cpu(seen),
            Column::Cost => words::cost(seen.cost.share),
            Column::Left => words::left(probe),
        }
    }
}

/// Returns a text aligned to the right in its cells.
fn right(text: &str, cells: usize) -> String {
    format!(
        "{}{text}",
        " ".repeat(cells.saturating_sub(text::width(text)))
    )
}

/// Returns the heads of the columns, aligned to the right.
fn heads_line(width: u16) -> String {
    let heads = columns(width).into_iter();
    let heads: String = heads
        .map(|(column, cells)| right(&column.head(), cells))
        .collect();
    format!("{heads}  FUNCTION")
}

/// Draws a probe in the list. A probe that was removed is dim, and keeps its counts.
fn render_row(
    probe: &Probe,
    max: u32,
    is_selected: bool,
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    let cells = columns(area.width).into_iter();
    let line: String = cells
        .map(|(column, cells)| right(&column.text(probe, max), cells))
        .collect();
    let room = usize::from(area.width).saturating_sub(text::width(&line) + 2);
    let line = format!("{line}  {}", text::short_name(&probe.name, room));
    let style = match &probe.stage {
        Stage::Gone(_) => theme.dim(),
        Stage::Sought | Stage::Missing | Stage::InPlace { .. } | Stage::Recorded(_) => Style::new(),
    };
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x, area.y, line, area.width.into(), style);
    if is_selected {
        buffer.set_string(area.x, area.y, ">", Style::new());
        buffer.set_style(area, theme.selected());
        frame.set_cursor_position(Position::new(area.x + 1, area.y));
    }
}

/// Returns a block for each of the last seconds.
fn last_seconds(seen: &Seen, seconds: usize, max: u32) -> String {
    let from = seen.trend.len().saturating_sub(seconds);
    let seconds: Vec<u64> = seen.trend[from..]
        .iter()
        .map(|calls| u64::from(*calls))
        .collect();
    trend::blocks(&seconds, max.into())
}

/// Draws details about the selected probe below the list, as many as there are lines for:
///
/// ```text
/// ── name  module+0x1234 ─────────────────
///  sentences on what was counted
///  calls/s ▁▂▅▇▃▂                most 120/s
///  HOW LONG, FROM     arg1 (rdi)
///    512ns ████ 7      60%  42
///   1.02us █ 2        FROM WHERE, of 9 stacks
/// ```
fn render_detail(cx: &Context<'_>, probe: &Probe, theme: &Theme, frame: &mut Frame, area: Rect) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    // The address is known once the breakpoint is in place.
    let place = probe.seen.as_ref().map_or_else(String::new, |seen| {
        if seen.site.is_point {
            format!("  {}", probe.module)
        } else {
            format!("  {}+{:#x}", probe.module, seen.site.address)
        }
    });
    let title = format!(" {}{place}", probe.name);
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x, area.y, "─".repeat(width), width, theme.dim());
    let title = text::cut_middle(&title, width.saturating_sub(6)).into_owned() + " ";
    buffer.set_stringn(
        area.x + 2,
        area.y,
        title,
        width.saturating_sub(4),
        theme.title(),
    );
    let mut y = area.y + 1;
    for sentence in words::sentences(cx, probe) {
        let sentence = if theme.is_ascii() {
            sentence.replace('±', "+-")
        } else {
            sentence
        };
        for line in text::wrap(&sentence, width.saturating_sub(2)) {
            if y >= area.bottom() {
                return;
            }
            buffer.set_stringn(area.x + 1, y, line, width - 1, Style::new());
            y += 1;
        }
    }
    let Some(seen) = &probe.seen else {
        return;
    };
    if y < area.bottom() && !seen.trend.is_empty() {
        render_timeline(
            seen,
            theme,
            frame,
            Rect {
                y,
                height: 1,
                ..area
            },
        );
        y += 1;
    }
    let rest = Rect {
        y,
        height: area.bottom().saturating_sub(y),
        ..area
    };
    let histogram = if area.width >= WIDTH_WIDE {
        HISTOGRAM_WIDE
    } else {
        HISTOGRAM
    };
    // If no call has returned yet there is no histogram, and the shares get the whole width.
    let right = match &seen.latency {
        Some(latency) => {
            let left = Rect {
                width: histogram.min(area.width),
                ..rest
            };
            render_histogram(latency, theme, frame, left);
            Rect {
                x: rest.x + left.width,
                width: rest.width - left.width,
                ..rest
            }
        }
        None => rest,
    };
    render_shares(seen, theme, frame, right);
}

/// Draws the calls of each second of one probe, on a scale of its own.
fn render_timeline(seen: &Seen, theme: &Theme, frame: &mut Frame, line: Rect) {
    let max = seen.trend.iter().copied().max().unwrap_or(0);
    let most = format!("most {}/s", units::count(max.into()));
    let head = "calls/s ";
    let room = usize::from(line.width).saturating_sub(head.len() + text::width(&most) + 4);
    let blocks = last_seconds(seen, room.min(TREND_MAX), max);
    let buffer = frame.buffer_mut();
    let (x, y) = (line.x + 1, line.y);
    let (x, _) = buffer.set_stringn(x, y, head, room, Style::new());
    let (x, _) = buffer.set_stringn(x, y, blocks, room, theme.trend());
    buffer.set_stringn(
        x + 1,
        y,
        most,
        usize::from(line.right() - x - 1),
        theme.dim(),
    );
}

/// Width of the time before a bar.
const FROM: usize = 7;
/// Width of the number of calls after a bar.
const COUNT: usize = 10;

/// Draws a line for each range of durations, under a heading. The longest bar fills the room; a
/// range with at least one call gets at least one cell.
fn render_histogram(latency: &Latency, theme: &Theme, frame: &mut Frame, area: Rect) {
    if area.height < 2 {
        return;
    }
    let buffer = frame.buffer_mut();
    let width = usize::from(area.width);
    buffer.set_stringn(
        area.x + 1,
        area.y,
        "HOW LONG, FROM",
        width - 1,
        theme.title(),
    );
    let buckets = histogram(latency, usize::from(area.height - 1));
    let most = buckets.iter().map(|bucket| bucket.calls).max();
    let room = width.saturating_sub(FROM + COUNT + 5) as u64;
    for (Bucket { from, calls }, y) in buckets.iter().zip(area.y + 1..area.bottom()) {
        let cells = (calls * room).div_ceil(most.unwrap_or(1).max(1)) as usize;
        let head = format!(" {from:>FROM$} ");
        let (x, _) = buffer.set_stringn(area.x, y, head, width, Style::new());
        let bar = "█".repeat(cells);
        let (x, _) = buffer.set_stringn(x, y, bar, room as usize, theme.trend());
        let x = if cells > 0 { x + 1 } else { x };
        buffer.set_stringn(x, y, units::count(*calls), COUNT, Style::new());
    }
}

/// Draws values, callers and threads, each under its heading.
fn render_shares(seen: &Seen, theme: &Theme, frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width.saturating_sub(1));
    let buffer = frame.buffer_mut();
    let mut y = area.y;
    for section in sections(seen, area.height.into()) {
        let title = text::cut_end(&section.title, width).into_owned();
        buffer.set_stringn(area.x, y, title, width, theme.title());
        y += 1;
        for row in section.lines() {
            let row = text::cut_end(&row, width).into_owned();
            buffer.set_stringn(area.x, y, row, width, Style::new());
            y += 1;
        }
    }
}
