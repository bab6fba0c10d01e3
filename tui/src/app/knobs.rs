//! Changes what is counted, and goes back and forward in the history.

use super::{App, Effect, undo};
use crate::app::history::ScreenPosition;
use crate::knobs::{Knobs, Window};
use crate::notice::Notice;
use crate::order::Order;
use crate::views::PaneId;
use std::sync::Arc;

impl App {
    /// Changes the knobs. If that makes a difference, it is a step in the history.
    pub(crate) fn turn(&mut self, change: impl FnOnce(&mut Knobs)) {
        let before = self.place();
        change(&mut self.knobs);
        if self.knobs != before.knobs {
            self.after_turning(&before.knobs);
            self.history.leave(before);
        }
    }

    /// Changes the window. Several changes in a row are one step in the history.
    pub(super) fn set_window(&mut self, window: Window) {
        let before = self.place();
        if window != self.knobs.window {
            self.knobs.window = window;
            self.after_turning(&before.knobs);
            self.history.leave_window(before);
        }
    }

    /// Follows up on a change of the knobs. If other samples count, the number of turns rises, and
    /// the engine's report is shown at once if it answers the present knobs. `before` are the
    /// previous knobs.
    pub(super) fn after_turning(&mut self, before: &Knobs) {
        if !self.knobs.asks_the_same(before) {
            self.feed.asking.turns += 1;
            if self.is_the_engines() {
                self.show(Arc::clone(&self.feed.base), true);
            }
        }
    }

    /// Adds the present position to the history. Called before something else is shown.
    pub(super) fn remember(&mut self) {
        let place = self.place();
        self.history.leave(place);
    }

    /// Returns everything that is needed to come back to the present position.
    pub(super) fn place(&self) -> ScreenPosition {
        let tabs = PaneId::ALL
            .iter()
            .filter(|pane| **pane == PaneId::of(pane.view()));
        let place = |pane: &PaneId| Some((*pane, self.views.get(*pane).place()?));
        ScreenPosition {
            view: self.view,
            knobs: self.knobs.clone(),
            panes: tabs.filter_map(place).collect(),
        }
    }

    /// Goes one step back. Returns a notice that says what was undone if the knobs have changed.
    /// The error says that there is no step.
    pub(super) fn go_back(&mut self) -> Result<Option<Notice>, Notice> {
        let here = self.place();
        let place = self.history.back(here.clone()).ok_or(Notice::NoBack)?;
        let undone = undo::words(&here.knobs, &place.knobs);
        // Opening a view by its number is not a step. The view is left together with the step
        // before.
        let left = (place.view != here.view).then(|| place.view.name());
        self.go_to(place);
        let words = undone.map(|what| match left {
            Some(view) => format!("{what}, and back in {view}"),
            None => what,
        });
        Ok(words.map(Notice::Undone))
    }

    /// Goes one step forward. The error says that there is none.
    pub(super) fn go_forward(&mut self) -> Result<(), Notice> {
        let place = self
            .history
            .forward(self.place())
            .ok_or(Notice::NoForward)?;
        self.go_to(place);
        Ok(())
    }

    /// Restores the knobs and the views of a position in the history.
    fn go_to(&mut self, place: ScreenPosition) {
        let before = std::mem::replace(&mut self.knobs, place.knobs);
        // A step back never removes the baseline, because the user chose it. But undoing the step
        // that replaced a baseline brings the previous one back.
        if self.knobs.baseline.is_none() {
            self.knobs.baseline.clone_from(&before.baseline);
        }
        for (pane, place) in &place.panes {
            self.views.get_mut(*pane).return_to(&**place);
        }
        // The selection is not carried over: the view shows the selection that it had when it was
        // left.
        if place.view != self.view {
            self.release();
            self.view = place.view;
        }
        self.refresh(true);
        self.after_turning(&before);
    }

    /// Makes the window shorter or longer. The new window ends now, even if the old one did not.
    pub(super) fn step_window(&mut self, longer: bool) -> Vec<Effect> {
        let window = self.knobs.window;
        self.apply_for_key(Order::Window(if longer {
            window.longer()
        } else {
            window.shorter()
        }))
    }

    /// Switches to the next unit that numbers can be shown in.
    pub(super) fn next_unit(&mut self) -> Vec<Effect> {
        let cx = self.context();
        let next = cx.unit().next(cx.has_time());
        self.apply_for_key(Order::Unit(Some(next)))
    }
}
