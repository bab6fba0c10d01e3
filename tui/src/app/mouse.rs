//! A click selects a row or opens a view, the wheel moves the selection. What
//! lies where is the geometry's to say; clicks on heads come as [`Event::Head`].
//!
//! [`Event::Head`]: super::Event::Head

use super::App;
use crate::screen::motion::Motion;
use crate::screen::tabs::{Tab, tabs};
use crate::screen::{Detail, Mode, View};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

const WHEEL_LINES: usize = 3;

pub fn point(app: &mut App, event: MouseEvent) {
    if !matches!(app.mode, Mode::Browse) {
        return;
    }
    match event.kind {
        MouseEventKind::ScrollUp => app.go(Motion::Up(WHEEL_LINES)),
        MouseEventKind::ScrollDown => app.go(Motion::Down(WHEEL_LINES)),
        MouseEventKind::Down(MouseButton::Left) => click(app, event.column, event.row),
        MouseEventKind::Drag(MouseButton::Left) => drag(app, event.column, event.row),
        _ => return,
    }
    app.calm.key_at = Some(app.now);
    app.detail = Detail::Row;
}

fn click(app: &mut App, column: u16, row: u16) {
    let Some(geometry) = app.geometry() else {
        return;
    };
    if geometry.tabs == Some(row) {
        if let Some(view) = tab_at(app.view, geometry.width, column) {
            app.open(view);
        }
    } else if column < app.view_width()
        && (geometry.body..geometry.body + geometry.body_height).contains(&row)
    {
        app.select_at(column, usize::from(row - geometry.body));
    }
}

/// A stretch of time; nothing elsewhere.
fn drag(app: &mut App, column: u16, row: u16) {
    let Some(geometry) = app.geometry() else {
        return;
    };
    let body = geometry.body..geometry.body + geometry.body_height;
    if app.view == View::Time && body.contains(&row) {
        let line = usize::from(row - geometry.body);
        app.views.time.drag_to(column, line);
    }
}

fn tab_at(open: View, width: u16, column: u16) -> Option<View> {
    let mut tabs = tabs(open, width).into_iter();
    let holds = |tab: &Tab| (tab.start..tab.start + tab.width()).contains(&column);
    Some(tabs.find(holds)?.view)
}
