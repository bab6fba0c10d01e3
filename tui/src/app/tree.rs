//! Keys of the call tree and the flame graph.

use super::App;
use crate::screen::tree::FoldAction;
use crate::screen::{Detail, Notice, View};

impl App {
    /// Where the selected function is called from.
    pub(super) fn open_callers(&mut self) {
        let Some(function) = self.function_here() else {
            return;
        };
        let report = &self.shown.report;
        let row = report.find_function(function);
        let was_on_top = row.is_some_and(|at| report.functions[at].self_samples > 0);
        self.remember();
        self.open(View::Tree);
        self.views.tree.look_for(function, was_on_top);
    }

    pub(super) fn fold(&mut self, action: FoldAction) {
        self.views.tree.fold(action);
    }

    /// By process, by thread, or all together.
    pub(super) fn group(&mut self) {
        match self.view {
            View::Tree => self.views.tree.group(),
            View::Flame => self.views.flame.group(),
            _ => {}
        }
    }

    pub(super) fn select_same_name(&mut self) {
        if let Some((position, count)) = self.views.flame.select_same() {
            self.detail = Detail::Notice(Notice::SameName { position, count });
        }
    }

    pub(super) fn open_hot_path(&mut self) {
        let steps = self.views.tree.open_hot_path();
        self.detail = Detail::Notice(Notice::HotPath(steps));
    }
}
