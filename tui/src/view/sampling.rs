//! The sampling dialog, over the body.

use super::theme::Theme;
use super::{text, units};
use crate::app::App;
use crate::screen::sampling::{RATES, SamplingDialog};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

const WIDTH_MAX: u16 = 80;
/// The frame, five lines of how, and two for what there is to say.
const HEIGHT: u16 = 9;
/// Labels are left of that.
const INDENT: u16 = 10;

pub fn render(app: &App, dialog: &SamplingDialog, theme: &Theme, frame: &mut Frame) {
    let all = frame.area();
    let width = all.width.min(WIDTH_MAX);
    let area = Rect {
        x: (all.width - width) / 2,
        y: 3,
        width,
        height: HEIGHT.min(all.height.saturating_sub(3)),
    };
    let keys = match dialog.sampler.rate_is_fixed {
        Some(_) => " Esc close ",
        None => " Enter change   Left Right rate   0-9 another   Esc close ",
    };
    let block = Block::bordered().title(" Sampling ").title_bottom(keys);
    let inner = block.inner(area);
    Clear.render(area, frame.buffer_mut());
    block.render(area, frame.buffer_mut());
    let line = |y: u16| Rect {
        y: inner.y + y,
        height: 1,
        ..inner
    };
    let plain = Style::new();
    render_rates(dialog, theme, frame, line(0));
    let (shown, sampler) = (&app.shown, &dialog.sampler);
    entry("Engine", shown.engine, plain, theme, frame, line(1));
    entry("Stacks", sampler.unwinding, plain, theme, frame, line(2));
    let health = &shown.health;
    let buffers = format!(
        "{}; {} of {} lost in this run",
        sampler.buffers,
        units::count(health.lost_run),
        units::counted(health.taken_run + health.lost_run, "sample")
    );
    entry("Buffers", &buffers, plain, theme, frame, line(3));
    let cost = format!(
        "{:.1}% of one CPU at {} Hz",
        health.own_cpu_percent, shown.rate_hz
    );
    entry("Own cost", &cost, plain, theme, frame, line(4));
    let (words, style) = remark(dialog, theme);
    let room = usize::from(inner.width.saturating_sub(INDENT));
    let lines = super::detail::wrap(&words, room);
    for (number, words) in (0..2).zip(&lines) {
        entry("", words, style, theme, frame, line(5 + number));
    }
}

fn remark(dialog: &SamplingDialog, theme: &Theme) -> (String, Style) {
    match (&dialog.problem, dialog.sampler.rate_is_fixed) {
        (Some(why), _) => (why.clone(), theme.warning()),
        (None, Some(why)) => (format!("the rate stays as it is: {why}"), Style::new()),
        (None, None) => (
            "counts from now on; a window of several rates counts all of it at the highest".into(),
            Style::new(),
        ),
    }
}

fn entry(label: &str, words: &str, style: Style, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x + 1, area.y, label, area.width.into(), theme.title());
    let room = usize::from(area.width.saturating_sub(INDENT));
    let words = text::clean(words);
    let words = text::cut_end(&words, room);
    buffer.set_stringn(area.x + INDENT, area.y, words, room, style);
}

/// `19  49 (99) 199  499  999  other`
fn render_rates(dialog: &SamplingDialog, theme: &Theme, frame: &mut Frame, area: Rect) {
    entry("Rate", "", Style::new(), theme, frame, area);
    let is_fixed = dialog.sampler.rate_is_fixed.is_some();
    let known = RATES.iter().map(|hz| (hz.to_string(), *hz));
    let other = match dialog.chosen {
        hz if RATES.contains(&hz) => None,
        0 => Some(("_".to_owned(), 0)),
        hz => Some((hz.to_string(), hz)),
    };
    let mut x = area.x + INDENT;
    for (words, hz) in known.chain(other) {
        let is_chosen = hz == dialog.chosen;
        let style = match (is_chosen, is_fixed) {
            (true, _) => theme.selected(),
            (false, true) => theme.dim(),
            (false, false) => Style::new(),
        };
        let words = match is_chosen {
            true => format!("({words})"),
            false => format!(" {words} "),
        };
        let room = usize::from(area.right().saturating_sub(x));
        let (end, _) = frame
            .buffer_mut()
            .set_stringn(x, area.y, words, room, style);
        if is_chosen {
            frame.set_cursor_position(Position::new(x + 1, area.y));
        }
        x = end + 1;
    }
    let room = usize::from(area.right().saturating_sub(x));
    frame
        .buffer_mut()
        .set_stringn(x, area.y, "Hz a CPU", room, theme.dim());
}
