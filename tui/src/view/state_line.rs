//! The one-line state under the header, in reverse video.

use super::theme::Theme;
use super::{text, units};
use crate::app::App;
use crate::screen::state::State;
use ratatui::Frame;
use ratatui::layout::Rect;

pub fn render(app: &App, state: &State, theme: &Theme, frame: &mut Frame, area: Rect) {
    let line = format!(" ■ {}", sentence(app, state));
    let buffer = frame.buffer_mut();
    let room = usize::from(area.width);
    buffer.set_stringn(
        area.x,
        area.y,
        text::cut_end(&line, room),
        room,
        theme.state(),
    );
    buffer.set_style(area, theme.state());
}

fn sentence(app: &App, state: &State) -> String {
    match state {
        State::Failed(why) => format!("FAILED {why}"),
        State::Exited(who) => format!("EXITED {}. Data kept.", who.trim_end_matches('.')),
        State::Frozen { ago, newer } => format!(
            "FROZEN {} ago; {} wait{}.  Space: go on",
            units::clock(*ago),
            units::counted(*newer, "newer sample"),
            if *newer == 1 { "s" } else { "" }
        ),
        State::NoMatch { pattern, rows } => format!(
            "NO MATCH /{}/ finds nothing in {}.  Esc: end the find",
            text::cut_end(pattern, 30),
            units::counted(*rows as u64, "row")
        ),
        State::Behind(took) => format!(
            "BEHIND the terminal takes {:.1} s for a frame; some are left out",
            took.as_secs_f64()
        ),
        State::Idle => format!(
            "IDLE   no samples: {} used no CPU in {}. Longer window: .",
            app.shown.scope,
            units::span(app.window)
        ),
        State::Lost { lost, taken } => format!(
            "LOST   {} of {} ({}%): a buffer was full.  8 Health",
            units::count(*lost),
            units::count(lost + taken),
            units::percent(*lost, lost + taken)
        ),
        State::Cut { cut, stacks, cause } => format!(
            "CUT    {}% of stacks end early ({}).  8 Health",
            units::percent(*cut, *stacks),
            cause.label().replace('_', " ")
        ),
    }
}
