//! A strip that shows how many CPUs were busy with the samples in scope, second by second, to
//! compare the window with.

use crate::calendar::{self, SECOND_NS};
use crate::context::Context;
use crate::desk::seconds::{Seconds, SecondsAnswer};
use crate::widgets::theme::Theme;
use crate::widgets::trend;
use crate::words::{text, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Width of the head, ` LAST 60s `.
const HEAD: usize = 10;

/// Draws the line: a block for each of the last seconds, as many as fit, and in words the newest
/// and the highest number.
pub fn render(seconds: &Seconds, cx: &Context<'_>, theme: &Theme, frame: &mut Frame, line: Rect) {
    let buffer = frame.buffer_mut();
    let Some(answer) = seconds.answer() else {
        buffer.set_string(line.x + 1, line.y, "counting…", theme.dim());
        return;
    };
    // The words are about the seconds that are drawn, so room for the longest words is reserved
    // first.
    let longest = text::width(&words(&answer.samples, answer, cx));
    let room = usize::from(line.width).saturating_sub(HEAD + longest + 2);
    let seconds = &answer.samples[answer.samples.len().saturating_sub(room)..];
    let words = words(seconds, answer, cx);
    let most = seconds.iter().copied().max().unwrap_or(0);
    let head = format!(" LAST {:2}s ", seconds.len());
    let (x, _) = buffer.set_stringn(line.x, line.y, head, HEAD, Style::new());
    let (x, _) = buffer.set_stringn(x, line.y, trend::blocks(seconds, most), room, theme.trend());
    let left = usize::from(line.right() - x).saturating_sub(2);
    buffer.set_stringn(x + 2, line.y, words, left, Style::new());
}

/// Returns the words: `CPUs in scope: now 3.31, max 8.90 at 14:02:40 UTC`.
fn words(seconds: &[u64], answer: &SecondsAnswer, cx: &Context<'_>) -> String {
    let newest_first = seconds.iter().rev().zip(1_u64..);
    // The newest of several equal seconds.
    let most = newest_first.max_by_key(|(samples, ago)| (**samples, std::cmp::Reverse(*ago)));
    let (Some((most, ago)), Some(newest)) = (most, seconds.last()) else {
        return String::new();
    };
    let start_ns = answer.end_ns.saturating_sub(ago * SECOND_NS);
    let at_ms = (start_ns / 1_000_000) as i64 + answer.epoch_unix_ms;
    let (when, zone) = (calendar::of_day(at_ms), calendar::zone(at_ms));
    let is_time = cx.counts_time();
    let amount = |samples: u64| match units::cpus(samples, answer.rate_hz, 1.0) {
        _ if is_time => units::nanoseconds(samples),
        Some(cpus) => format!("{cpus:.2}"),
        None => units::count(samples),
    };
    let unit = match answer.rate_hz {
        _ if is_time => "time a second",
        0 => "samples",
        _ => "CPUs",
    };
    // The last second of a recording may be incomplete.
    let newest = match cx.shown.source.recording {
        Some(_) => String::new(),
        None => format!("now {}, ", amount(*newest)),
    };
    format!(
        "{unit} in scope: {newest}max {} at {when} {zone}",
        amount(*most)
    )
}
