//! The sampling dialog, over the body.

use crate::app::App;
use crate::dialogs::sampling::{RATES, SamplingDialog};
use crate::widgets::dialog;
use crate::widgets::dialog::Dialog;
use crate::widgets::theme::Theme;
use crate::words::units;
use probe::EngineKind;
use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::style::Style;

/// The lines of the dialog: two of the frame, five that say how samples are taken, and two for a
/// remark.
const HEIGHT: u16 = 9;
/// Width of the labels.
const INDENT: u16 = 10;

/// Draws the sampling dialog.
pub fn render(app: &App, sampling: &SamplingDialog, theme: &Theme, frame: &mut Frame) {
    let keys = match sampling.sampler.rate_is_fixed {
        Some(_) => " Esc close ",
        None => " Enter change   Left Right rate   0-9 another   Esc close ",
    };
    let area = dialog::area(frame.area(), HEIGHT);
    let on = Dialog::open(area, " Sampling ", keys, INDENT, theme, frame);
    render_rates(sampling, &on, frame);
    let (shown, sampler) = (&app.shown, &sampling.sampler);
    let health = &shown.health;
    let buffers = format!(
        "{}; {} of {} lost in this run",
        sampler.buffers,
        units::count(health.lost_run),
        units::counted(health.taken_run + health.lost_run, "sample")
    );
    let cost = format!(
        "{:.1}% of one CPU at {} Hz",
        health.own_cpu_percent, shown.source.rate_hz
    );
    let entries = [
        ("Engine", shown.source.engine.map_or("", EngineKind::label)),
        ("Stacks", sampler.unwinding),
        ("Buffers", &buffers),
        ("Own cost", &cost),
    ];
    for ((label, words), number) in entries.into_iter().zip(1..) {
        on.entry(label, words, Style::new(), frame, on.line(number));
    }
    let (words, style) = remark(sampling, theme);
    on.remark("", &words, style, frame, 5);
}

/// Returns what is wrong with the rate, why it cannot be changed, or what a change does.
fn remark(sampling: &SamplingDialog, theme: &Theme) -> (String, Style) {
    match (&sampling.problem, sampling.sampler.why_fixed()) {
        (Some(why), _) => (why.clone(), theme.warning()),
        (None, Some(why)) => (why, Style::new()),
        (None, None) => (
            "counts from now on; a window of several rates counts all of it at the highest".into(),
            Style::new(),
        ),
    }
}

/// Draws the rates, such as ` 19   49  (99)  199   499   999  Hz a CPU`. A typed rate follows the
/// known ones.
fn render_rates(sampling: &SamplingDialog, on: &Dialog, frame: &mut Frame) {
    let (area, theme) = (on.line(0), on.theme);
    on.entry("Rate", "", Style::new(), frame, area);
    let is_fixed = sampling.sampler.rate_is_fixed.is_some();
    let known = RATES.iter().map(|hz| (hz.to_string(), *hz));
    let other = match sampling.chosen {
        hz if RATES.contains(&hz) => None,
        0 => Some(("_".to_owned(), 0)),
        hz => Some((hz.to_string(), hz)),
    };
    let mut x = area.x + on.indent;
    for (words, hz) in known.chain(other) {
        let is_chosen = hz == sampling.chosen;
        let style = match (is_chosen, is_fixed) {
            (true, _) => theme.selected(),
            (false, true) => theme.dim(),
            (false, false) => Style::new(),
        };
        let words = if is_chosen {
            format!("({words})")
        } else {
            format!(" {words} ")
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
