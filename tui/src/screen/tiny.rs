//! The single line for a terminal that is too small for the screen: the size that is needed, and
//! still the most important numbers.

use crate::action::Action;
use crate::app::App;
use crate::geometry::SIZE_MIN;
use crate::words::fit::{Segment, fit};
use crate::words::{metric, names, text, units};
use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::style::Style;

/// Draws the line for a terminal that is too small.
pub fn render(app: &App, frame: &mut Frame) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let mut segments = segments(app);
    fit(&mut segments, area.width.into(), 3);
    let texts: Vec<&str> = segments
        .iter()
        .map(Segment::text)
        .filter(|text| !text.is_empty())
        .collect();
    let line = texts.join(" · ");
    let room = usize::from(area.width);
    let buffer = frame.buffer_mut();
    buffer.set_stringn(
        area.x,
        area.y,
        text::cut_end(&line, room),
        room,
        Style::new(),
    );
    frame.set_cursor_position(Position::new(area.x, area.y));
}

/// Returns the segments of the line. The sentence that the terminal is too small stays longest,
/// then the number of samples and losses. The size of the terminal is left out first.
fn segments(app: &App) -> Vec<Segment> {
    let report = &app.shown.report;
    let need = format!("need {}x{}", SIZE_MIN.width, SIZE_MIN.height);
    let sentence = format!("too small: {need}");
    let samples = metric::amount(&app.context(), report.samples);
    let mut segments = vec![
        Segment::new(
            1,
            [
                format!(
                    "proftop {}x{}",
                    app.terminal.size.width, app.terminal.size.height
                ),
                String::new(),
            ],
        ),
        Segment::new(9, [sentence, need]),
        Segment::new(8, [samples, String::new()]),
    ];
    if app.shown.health.lost > 0 {
        let lost = format!("lost {}", units::count(app.shown.health.lost));
        segments.push(Segment::new(8, [lost, String::new()]));
    }
    if let Some(top) = report.functions.first() {
        let share = units::share(report, top.self_samples, report.samples);
        segments.push(Segment::new(
            7,
            [
                format!(
                    "{} {share}%",
                    text::cut_middle(&names::short(&top.name), 24)
                ),
                format!(
                    "{} {share}%",
                    text::cut_middle(&names::short(&top.name), 10)
                ),
                String::new(),
            ],
        ));
    }
    let quit = app.input.keymap.label(Action::Quit, app.view);
    let quit = quit.map_or_else(String::new, |key| format!("{key} quit"));
    segments.push(Segment::new(8, [quit, String::new()]));
    segments
}
