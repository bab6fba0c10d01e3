//! Handles keys of the call tree and the flame graph.

use super::App;
use crate::view_id::ViewId;
use std::sync::Arc;

impl App {
    /// Shows the callers of the selected function as a tree.
    pub(super) fn open_callers(&mut self) {
        let Some(function) = self.function_here() else {
            return;
        };
        let report = &self.shown.report;
        let row = report.find_function(function);
        // A function with own samples is at the top of a branch in the tree of callers. Any other
        // function is searched for in the tree of callees.
        let was_on_top = row.is_some_and(|at| report.functions[at].self_samples > 0);
        self.remember();
        self.open(ViewId::Tree);
        self.views.tree.look_for(function, was_on_top);
    }

    /// Finds a function although no row or frame on the screen matches the search: of the functions
    /// whose names match, the one with most samples is selected, even if its row is closed or its
    /// frame too narrow. Returns its name.
    pub(super) fn look_below(&mut self) -> Option<Arc<str>> {
        let find = self.find()?.find;
        let functions = self.shown.report.functions.iter();
        let found = functions
            .filter(|row| find.matches(&row.name))
            .max_by_key(|row| row.total_samples)?;
        let (id, name) = (found.id, Arc::clone(&found.name));
        self.views
            .get_mut(self.pane_here())
            .reveal(id)
            .then_some(name)
    }
}
