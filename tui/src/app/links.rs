//! Carries the selection from one view to the next: a function that the user selected is also
//! selected in the view that is opened next.

use super::App;
use crate::views::PaneId;
use profile::FunctionId;

impl App {
    /// Stores the selected function, because the open view is about to be left.
    pub(super) fn leave_view(&mut self) {
        let held = self
            .views
            .get(PaneId::of(self.view))
            .held_function(&self.context());
        // A view without functions keeps the function that was selected before it was opened.
        self.linked = held.unwrap_or(self.linked);
    }

    /// Selects the stored function in the view that was opened.
    pub(super) fn enter_view(&mut self) {
        let pane = PaneId::of(self.view);
        let linked = self.linked.map(|id| self.current(id));
        let held = self
            .views
            .get(pane)
            .held_function(&self.context())
            .flatten();
        if linked.is_none() || held.map(|id| self.current(id)) != linked {
            self.with(pane, |view, cx| view.follow_function(cx, linked));
        }
    }

    /// Returns the present id of a function, given an id from an older report.
    pub(super) fn current(&self, id: FunctionId) -> FunctionId {
        let owner = self.shown.report.owners.get(id.0 as usize);
        owner.copied().unwrap_or(id)
    }
}
