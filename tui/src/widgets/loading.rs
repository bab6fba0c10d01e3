//! Shows which files' symbols are being read, in the lines that the rows leave free, so that no row
//! moves.

use crate::context::Context;
use crate::widgets::theme::Theme;
use crate::words::{text, units};
use engine::snapshot::Loading;
use ratatui::Frame;
use ratatui::layout::Rect;

const BAR: usize = 20;
const LINES_MAX: u16 = 4;

/// Draws the files whose symbols are being read, at the end of the `free` lines below the rows.
pub fn render(cx: &Context<'_>, theme: &Theme, frame: &mut Frame, free: Rect) {
    let report = &cx.shown.report;
    let mut lines: Vec<String> = Vec::new();
    if (1..1_000).contains(&report.samples) {
        lines.push(few_samples(cx));
    }
    lines.extend(cx.shown.names.loading.iter().map(bar));
    let room = free.height.saturating_sub(1).min(LINES_MAX);
    lines.truncate(room.into());
    let first = free.bottom() - lines.len() as u16;
    for (y, line) in (first..free.bottom()).zip(lines) {
        let width = usize::from(free.width.saturating_sub(2));
        let line = text::cut_end(&line, width).into_owned();
        frame
            .buffer_mut()
            .set_stringn(free.x + 2, y, line, width, theme.dim());
    }
}

fn few_samples(cx: &Context<'_>) -> String {
    let report = &cx.shown.report;
    let top = report.functions.first().map_or(0, |row| row.self_samples);
    format!(
        "few samples: whole percents only until 1,000 ({} pp now)",
        units::band_text(report, top, report.samples)
    )
}

fn bar(loading: &Loading) -> String {
    let module = format!("{:<16}", text::cut_middle(&loading.module, 16));
    match loading.percent {
        Some(percent) => {
            let full = BAR * usize::from(percent.min(100)) / 100;
            let bar = "█".repeat(full) + &"░".repeat(BAR - full);
            format!("symbols  {module} {bar} {percent:>3}%  {}", loading.what)
        }
        None => format!("symbols  {module} {}", loading.what),
    }
}
