//! What is selected in one view is selected in the next: a function that was
//! chosen on purpose goes along when the view is switched.

use super::App;
use crate::view_id::ViewId;
use profile::FunctionId;

impl App {
    /// The open view is about to be left: notes what is selected there.
    pub(super) fn leave_view(&mut self) {
        match self.view {
            ViewId::Functions if self.difference().is_some() => {
                let is_held = self.views.difference.is_held();
                self.linked = self.function_here().filter(|_| is_held);
            }
            ViewId::Functions => self.linked = self.views.functions.held(),
            ViewId::Tree => self.linked = self.views.tree.side().held_function(),
            ViewId::Flame => self.linked = self.views.flame.held_function(),
            ViewId::Page => self.linked = self.views.page.function(),
            ViewId::Code => self.linked = self.views.code.function().or(self.linked),
            // Functions are not selected there, and none is forgotten.
            ViewId::Processes | ViewId::Threads | ViewId::Time | ViewId::Health => {}
        }
    }

    /// Another view is open: selects there what was selected before.
    pub(super) fn enter_view(&mut self) {
        if self.view == ViewId::Time {
            self.views.time.follow(self.linked);
        }
        let Some(function) = self.linked.map(|id| self.current(id)) else {
            return;
        };
        let is_other = |held: Option<FunctionId>| held.map(|id| self.current(id)) != Some(function);
        match self.view {
            ViewId::Functions if is_other(self.views.functions.held()) => {
                self.views
                    .functions
                    .select_key(function, &self.shown.report);
            }
            ViewId::Tree if is_other(self.views.tree.side().held_function()) => {
                self.views.tree.link(function);
            }
            ViewId::Flame if is_other(self.views.flame.held_function()) => {
                self.views.flame.look_for(function);
            }
            ViewId::Code if is_other(self.views.code.function()) => {
                self.views.code.open(function);
            }
            _ => {}
        }
    }

    /// The name that an older function goes by now.
    pub(super) fn current(&self, id: FunctionId) -> FunctionId {
        let owner = self.shown.report.owners.get(id.0 as usize);
        owner.copied().unwrap_or(id)
    }
}
