//! The *view* draws one frame from the app and changes nothing.
//!
//! ```text
//! proftop db-01  Linux 6.18 x86-64  16 CPU  busy 5.3/16      LIVE 00:03:12  99 Hz
//! system › postgres[4121]                win 10s   on-CPU   filter none   unit %
//! 3,277 samples  lost 0  stacks 98.9% whole  symbols 96.1%  own cost 0.8% of 1 CPU
//!  ■ one line, only while there is something to say
//! [1 Func] 2 Tree  4 Proc  5 Thread  8 Health                              ? help
//!  SELF%▼ TOTAL%  LAST 10s    FUNCTION                            MODULE
//! > 7.1    31.6   ▁▁▂▆█▇▂▁    heap_hot_search_buffer              postgres
//! 233 smp self ±0.9 pp / 1,036 total ±1.6 pp                      postgres+0x8f2c0
//! / find  s sort  . window  Space freeze
//! ```

mod busiest;
/// The line about the selected row.
mod detail;
mod footer;
mod header;
mod help;
/// Links to places in files.
pub mod links;
mod output;
/// The palette, which finds commands, functions and more by name.
mod palette;
/// The dialog about how samples are taken.
mod sampling;
mod state_line;
mod tabs;
/// The single line that a terminal gets which is too small.
mod tiny;
/// The dialog that writes a file.
mod write;

/// Tests of rules that hold for every frame.
#[cfg(test)]
mod rules;
#[cfg(test)]
mod tests;

use crate::app::mode::Mode;
use crate::app::parts::Strip;
use crate::app::{App, Crumb, Head};
use crate::geometry::{Geometry, ViewArea};
use crate::view_id::ViewId;
use crate::views::{Canvas, PaneId, flame};
use crate::widgets::theme::Theme;
use crate::widgets::{ascii, cpus, seconds};
use crate::words::text;
use ratatui::backend::TestBackend;
use ratatui::layout::{Position, Rect};
use ratatui::{Frame, Terminal};

/// Draws one frame of the app. It changes nothing but the frame.
pub fn draw(app: &App, theme: &Theme, frame: &mut Frame) {
    match app.geometry() {
        // The terminal may already have another size than the app knows; the next frame will fit.
        Some(geometry) if fits(app, frame) => {
            draw_screen(app, geometry, theme, frame);
        }
        _ => tiny::render(app, frame),
    }
    if theme.is_ascii() {
        ascii::fold(frame.buffer_mut());
    }
    // Links are added last, because a cell with a link contains an escape sequence besides its
    // character.
    if let Some(geometry) = app.geometry()
        && theme.links
        && fits(app, frame)
    {
        links::render(app, geometry, frame.buffer_mut());
    }
}

/// Returns the column whose head is at this cell of the screen, or `None` if there is no head, or
/// if its column cannot be sorted by.
pub fn head_at(app: &App, theme: &Theme, x: u16, y: u16) -> Option<Head> {
    if !matches!(app.mode, Mode::Browse) {
        return None;
    }
    let parts = app.parts()?;
    let is_in = |part: &ViewArea| part.heads == y && (part.x..part.x + part.width).contains(&x);
    let of_pane = parts.pane.filter(|(_, part)| is_in(part));
    let of_view = is_in(&parts.view).then_some((PaneId::of(app.view), parts.view));
    let (pane, part) = of_pane.or(of_view)?;
    let view = app.views.drawn(pane);
    Some(Head {
        column: view.head_at(&app.context_of(pane), part.width, theme, x - part.x)?,
        in_pane: of_pane.is_some(),
    })
}

/// Returns the step of the path in the header that is at this cell of the screen, if any.
pub fn crumb_at(app: &App, x: u16, y: u16) -> Option<Crumb> {
    let geometry = app.geometry()?;
    let is_line = y == 1 && geometry.header > 1 && matches!(app.mode, Mode::Browse);
    is_line.then(|| header::crumb_at(app, geometry.width, x))?
}

/// Returns the index of the frame above the zoomed one whose name is at this cell, if any.
pub fn ancestor_at(app: &App, x: u16, y: u16) -> Option<usize> {
    let part = app.parts()?.view;
    let is_line = y == part.body() && app.views.flame.has_path();
    let is_open = app.view == ViewId::Flame && matches!(app.mode, Mode::Browse);
    (is_line && is_open)
        .then(|| flame::draw::ancestor_at(&app.views.flame, &app.context(), part.width, x))?
}

/// Returns the whole screen as lines of text, which can be written to a file.
pub fn as_text(app: &App, theme: &Theme) -> String {
    let (width, height) = (app.terminal.size.width, app.terminal.size.height);
    let theme = &Theme {
        links: false,
        ..*theme
    };
    let mut terminal = match Terminal::new(TestBackend::new(width, height)) {
        Ok(terminal) => terminal,
        Err(never) => match never {},
    };
    let Ok(frame) = terminal.draw(|frame| draw(app, theme, frame));
    let buffer = frame.buffer;
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        // A wide character fills two cells. The second one is blank in the buffer and is not
        // written.
        let mut skip = 0;
        for x in 0..width {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = text::width(symbol).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Whether the frame is at least as large as the size that the app knows.
fn fits(app: &App, frame: &Frame) -> bool {
    let area = frame.area();
    area.width >= app.terminal.size.width && area.height >= app.terminal.size.height
}

/// Draws the lines from top to bottom, and over them what the mode shows: a prompt, a dialog, the
/// help or the output.
fn draw_screen(app: &App, geometry: Geometry, theme: &Theme, frame: &mut Frame) {
    let line = |y| Rect::new(0, y, geometry.width, 1);
    let header = Rect::new(0, 0, geometry.width, geometry.header);
    header::render(app, theme, frame, header);
    if let (Some(y), Some(state)) = (geometry.state, &app.lines.state) {
        state_line::render(app, state, theme, frame, line(y));
    }
    if let Some(y) = geometry.tabs {
        tabs::render(app, theme, frame, line(y));
    }
    draw_body(app, geometry, theme, frame);
    if let Some(y) = geometry.keys {
        footer::render(app, theme, frame, line(y));
    }
    detail::render(app, geometry, theme, frame);
    match &app.mode {
        Mode::Browse => {}
        Mode::Find(prompt) => {
            let y = geometry.keys.unwrap_or(geometry.detail);
            footer::render_find(app, prompt, theme, frame, line(y));
        }
        Mode::Filter(prompt) => {
            let y = geometry.keys.unwrap_or(geometry.detail);
            footer::render_filter(prompt, theme, frame, line(y));
        }
        Mode::Palette(open) => palette::render(app, open, geometry, theme, frame),
        Mode::Sampling(dialog) => sampling::render(app, dialog, theme, frame),
        Mode::Write(dialog) => write::render(app, dialog, theme, frame),
        Mode::Help { scroll } => help::render(app, *scroll, theme, frame),
        Mode::Output { scroll } => output::render(app, *scroll, theme, frame),
    }
}

/// Draws the open view, the pane beside it, the busiest processes and the strip. If the recording
/// lacks what the view needs, a sentence about that is drawn instead.
fn draw_body(app: &App, geometry: Geometry, theme: &Theme, frame: &mut Frame) {
    let Some(parts) = app.parts() else {
        return;
    };
    if let Some(why) = app.view.lacking(&app.shown) {
        let (heads, body) = areas(geometry.whole());
        return render_lacking(why, theme, frame, heads, body);
    }
    // The view that has the keys is drawn last, because the last cursor position that is set wins.
    let is_in_pane = app.in_pane().is_some();
    let open = PaneId::of(app.view);
    if is_in_pane {
        draw_pane(app, open, parts.view, theme, frame);
    }
    if let Some((beside, part)) = parts.pane {
        draw_pane(app, beside, part, theme, frame);
        // Below the map of time no rule is needed: the column heads separate the two.
        if part.heads == parts.view.heads {
            draw_rule(part, theme, frame);
        }
    }
    if let Some(busiest) = parts.busiest {
        let lines = Rect::new(busiest.x, busiest.heads, busiest.width, busiest.height + 1);
        busiest::render(&app.context(), theme, frame, lines);
    }
    if let Some((strip, part)) = parts.strip {
        let (rule, line) = areas(part);
        let width = usize::from(rule.width);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(rule.x, rule.y, "─".repeat(width), width, theme.dim());
        match strip {
            Strip::Cpus => cpus::render(&app.context(), theme, frame, line),
            Strip::Seconds => {
                seconds::render(&app.seconds, &app.context(), theme, frame, line);
            }
        }
    }
    if !is_in_pane {
        draw_pane(app, open, parts.view, theme, frame);
    }
}

/// Returns the areas of the column heads and of the body.
fn areas(part: ViewArea) -> (Rect, Rect) {
    (
        Rect::new(part.x, part.heads, part.width, 1),
        Rect::new(part.x, part.body(), part.width, part.height),
    )
}

/// Draws a view in its part of the body. A view that does not have the keys gets other colors.
fn draw_pane(app: &App, pane: PaneId, part: ViewArea, theme: &Theme, frame: &mut Frame) {
    let (heads, body) = areas(part);
    let cx = app.context_of(pane);
    let canvas = Canvas {
        theme: &theme.with_keys(cx.has_keys),
        frame,
        heads,
        body,
    };
    app.views.drawn(pane).draw(&cx, canvas);
}

/// Draws the vertical line between a view and the one to its right.
fn draw_rule(part: ViewArea, theme: &Theme, frame: &mut Frame) {
    for y in part.heads..part.body() + part.height {
        let buffer = frame.buffer_mut();
        buffer.set_string(part.x - 1, y, "│", theme.dim());
    }
}

/// Draws a sentence in place of a view whose data the recording lacks.
fn render_lacking(why: &str, theme: &Theme, frame: &mut Frame, heads: Rect, body: Rect) {
    let buffer = frame.buffer_mut();
    buffer.set_style(heads, theme.heads());
    let room = usize::from(body.width.saturating_sub(2));
    let line = format!("nothing to see here: {why}");
    buffer.set_stringn(body.x + 2, body.y + 1, line, room, theme.dim());
    frame.set_cursor_position(Position::new(body.x + 2, body.y + 1));
}
