//! The line below the header that shows the state, in reverse video.

use crate::action::Action;
use crate::app::App;
use crate::app::state::StateLine;
use crate::status::state::{nothing, sentence};
use crate::view_id::ViewId;
use crate::widgets::theme::Theme;
use crate::words::keys::{and, hint, key};
use crate::words::text;
use probe::EngineKind;
use ratatui::Frame;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// Draws the state, with the keys that help.
pub fn render(app: &App, state: &StateLine, theme: &Theme, frame: &mut Frame, area: Rect) {
    let room = usize::from(area.width);
    let line = line(app, state, room);
    let buffer = frame.buffer_mut();
    buffer.set_stringn(
        area.x,
        area.y,
        text::cut_end(&line, room),
        room,
        theme.state(),
    );
    // The whole line has this style, so that it looks like one bar.
    buffer.set_style(area, theme.state());
}

/// Returns the state and the keys that help, as much as there is room for. The state comes first,
/// and the most helpful key comes before the others.
fn line(app: &App, state: &StateLine, room: usize) -> String {
    let fits = |line: &str| line.width() <= room;
    let keys = keys(app, state);
    let first = keys.first().map_or("", String::as_str);
    let long = format!(" ■ {}", sentence(app, state));
    let mut line = match state {
        StateLine::Deadlock(deadlock) if !fits(&long) => {
            format!(" ■ DEADLOCK {} for {}.", deadlock.first(), deadlock.since)
        }
        // The header above already names the target.
        StateLine::Idle if !fits(&format!("{long}{first}")) => format!(" ■ IDLE  {}", nothing(app)),
        _ => long,
    };
    for key in keys {
        let longer = format!("{line}{key}");
        if fits(&longer) {
            line = longer;
        }
    }
    line
}

/// Returns the keys that help, the most helpful first, each with a gap before it.
fn keys(app: &App, state: &StateLine) -> Vec<String> {
    let hint = match state {
        StateLine::Frozen { .. } => hint(&app.context(), Action::Freeze, "go on"),
        StateLine::NoMatch { .. } => hint(&app.context(), Action::Back, "end the find"),
        StateLine::KeepsNothing { .. } => {
            let edit = hint(&app.context(), Action::EditFilter, "edit");
            let both = and("", "  ", [hint(&app.context(), Action::Back, "undo"), edit]);
            return vec![both];
        }
        // A wait that has not ended has no sample, however long the window is.
        StateLine::Idle if app.shown.counts_time() && app.view != ViewId::Threads => {
            let threads = key(&app.context(), Action::View(ViewId::Threads))
                .map(|key| format!("Waits that go on: {key} Thread"));
            return threads.map(|hint| format!(" {hint}")).into_iter().collect();
        }
        StateLine::Idle => {
            let longer = key(&app.context(), Action::LongerWindow);
            let longer = longer.map(|key| format!("longer window: {key}"));
            let both = [waits(app), longer].into_iter().flatten();
            return both.map(|hint| format!("  {hint}")).collect();
        }
        StateLine::Deadlock(_) => {
            let threads = key(&app.context(), Action::View(ViewId::Threads));
            threads.map(|key| format!("{key} Thread"))
        }
        StateLine::Lost { .. } | StateLine::Cut { .. } | StateLine::Gone { .. } => {
            let health = key(&app.context(), Action::View(ViewId::Health));
            health.map(|key| format!("{key} Health"))
        }
        StateLine::Failed(_)
        | StateLine::Stopped
        | StateLine::Exited { .. }
        | StateLine::Ended(_)
        | StateLine::Behind(_)
        | StateLine::Broken(_)
        | StateLine::File { .. } => None,
    };
    hint.map(|hint| format!("  {hint}")).into_iter().collect()
}

/// Returns the hint about the waits of a program that uses no CPU. Returns `None` if they are
/// already shown, or cannot be recorded.
fn waits(app: &App) -> Option<String> {
    let source = &app.shown.source;
    let may_begin = source.recording.is_none()
        && source.waits_refused.is_none()
        && source.engine != Some(EngineKind::Perf);
    let are_there = app.shown.metrics.len() > 1;
    if app.shown.counts_time() || !(are_there || may_begin) {
        return None;
    }
    key(&app.context(), Action::Metric).map(|key| format!("its waits: {key}"))
}
