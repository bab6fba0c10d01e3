//! What is selected in one view is selected in the next: a function that was
//! chosen on purpose goes along when the view is switched.

use super::App;
use crate::views::PaneId;
use profile::FunctionId;

impl App {
    /// The open view is about to be left: notes what is selected there.
    pub(super) fn leave_view(&mut self) {
        let held = self
            .views
            .get(PaneId::of(self.view))
            .held_function(&self.context());
        // A view without functions keeps the one that was selected before it was opened.
        self.linked = held.unwrap_or(self.linked);
    }

    /// Another view is open: selects there what was selected before.
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

    /// Returns the id that a function has in the shown report, by an id of an older one.
    pub(super) fn current(&self, id: FunctionId) -> FunctionId {
        let owner = self.shown.report.owners.get(id.0 as usize);
        owner.copied().unwrap_or(id)
    }
}
