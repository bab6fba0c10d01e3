//! Handles the mouse: a click selects a row or opens a view, and the wheel moves the selection. The
//! geometry says what is at which cell. Clicks on column heads come as [`Event::Head`].
//!
//! [`Event::Head`]: crate::app::Event::Head

use super::{App, Effect, keys};
use crate::action::{Action, Keymap};
use crate::app::mode::{Detail, Mode};
use crate::app::tabs::{Tab, tabs};
use crate::lists::motion::Motion;
use crate::view_id::ViewId;
use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use std::time::Duration;

/// How many rows one notch of the wheel moves the selection.
const WHEEL_LINES: usize = 3;

/// Two clicks on one cell within this time are a double click.
const DOUBLE: Duration = Duration::from_millis(400);

/// Whether mouse events are sent to us, and the last click.
#[derive(Debug)]
pub struct Mouse {
    /// Whether mouse events are sent to us and not handled by the terminal.
    pub is_captured: bool,
    /// Column, row and time of the last press of the left button.
    clicked: Option<(u16, u16, Duration)>,
}

impl Mouse {
    /// Creates the state of a mouse that was not clicked yet.
    pub fn new(is_captured: bool) -> Self {
        Mouse {
            is_captured,
            clicked: None,
        }
    }
}

/// Handles a click, a turn of the wheel or a drag. While a dialog is open, nothing happens.
pub fn point(app: &mut App, event: MouseEvent) -> Vec<Effect> {
    if !matches!(app.mode, Mode::Browse) {
        return Vec::new();
    }
    match event.kind {
        MouseEventKind::ScrollUp => scroll(app, event, Motion::Up(WHEEL_LINES)),
        MouseEventKind::ScrollDown => scroll(app, event, Motion::Down(WHEEL_LINES)),
        MouseEventKind::Down(MouseButton::Left) => {
            if is_double(app, event.column, event.row) {
                // A double click does what Enter does by default, even if the user has assigned
                // another key to that action.
                let enter = KeyEvent::from(KeyCode::Enter);
                return press(app, Keymap::default().find(enter, app.focus()));
            }
            click(app, event.column, event.row);
        }
        MouseEventKind::Down(MouseButton::Right) => {
            return press(app, Some(Action::Back));
        }
        MouseEventKind::Drag(MouseButton::Left) => drag(app, event.column, event.row),
        _ => return Vec::new(),
    }
    app.input.calm.key_at = Some(app.now);
    app.lines.detail = Detail::Row;
    Vec::new()
}

/// Carries out an action as if its key had been pressed.
fn press(app: &mut App, action: Option<Action>) -> Vec<Effect> {
    app.input.calm.key_at = Some(app.now);
    app.lines.detail = Detail::Row;
    action.map_or_else(Vec::new, |action| keys::act(app, action))
}

/// Whether this click is the second one of a double click on a row. Stores the click for the next
/// call.
fn is_double(app: &mut App, column: u16, row: u16) -> bool {
    let here = (column, row, app.now);
    let is_row = app.geometry().is_some_and(|geometry| {
        (geometry.body..geometry.body + geometry.body_height).contains(&row)
    });
    let is_double = app.input.mouse.clicked.is_some_and(|(x, y, when)| {
        is_row && (x, y) == (column, row) && app.now.saturating_sub(when) <= DOUBLE
    });
    // A third click starts over, so that it cannot end a second double click.
    app.input.mouse.clicked = (!is_double).then_some(here);
    is_double
}

/// Opens the view of a tab, or gives the keys to the view below the pointer and selects its row.
fn click(app: &mut App, column: u16, row: u16) {
    let Some(geometry) = app.geometry() else {
        return;
    };
    if geometry.tabs == Some(row) {
        if let Some(view) = tab_at(app, geometry.width, column) {
            app.open(view);
        }
    } else if let Some((is_pane, (column, line))) = place_at(app, column, row) {
        app.focus_on(is_pane);
        app.select_at(column, line);
    }
}

/// Returns whether a cell belongs to the view beside the open one, and its column and line within
/// its view. Returns `None` if the cell belongs to no view.
fn place_at(app: &App, column: u16, row: u16) -> Option<(bool, (u16, usize))> {
    let parts = app.parts()?;
    let beside = parts.pane.and_then(|(_, part)| part.place(column, row));
    let here = || Some((false, parts.view.place(column, row)?));
    beside.map(|place| (true, place)).or_else(here)
}

/// Scrolls the view below the pointer, even if the other view has the keys.
fn scroll(app: &mut App, event: MouseEvent, motion: Motion) {
    let focus = app.in_pane().is_some();
    let below = place_at(app, event.column, event.row);
    app.focus_on(below.map_or(focus, |(is_pane, _)| is_pane));
    app.go(motion);
    app.focus_on(focus);
}

/// Marks a stretch of time in the view of time. Does nothing in other views.
fn drag(app: &mut App, column: u16, row: u16) {
    if app.view == ViewId::Time
        && let Some((false, (column, line))) = place_at(app, column, row)
    {
        app.views.time.drag_to(column, line);
    }
}

/// Returns the view whose tab is in a column of the line of tabs.
fn tab_at(app: &App, width: u16, column: u16) -> Option<ViewId> {
    let mut tabs = tabs(&app.input.keymap, app.view, width).into_iter();
    let holds = |tab: &Tab| (tab.start..tab.start + tab.width()).contains(&column);
    Some(tabs.find(holds)?.view)
}
