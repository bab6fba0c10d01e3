//! Keys of the call tree and the flame graph.

use super::App;
use crate::action::FoldAction;
use crate::app::mode::{Detail, Notice};
use crate::view_id::ViewId;
use std::sync::Arc;

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
        self.open(ViewId::Tree);
        self.views.tree.look_for(function, was_on_top);
    }

    pub(super) fn fold(&mut self, action: FoldAction) {
        let pane = self.in_pane();
        self.views.tree_in_mut(pane).fold(action);
    }

    /// By process, by thread, or all together.
    pub(super) fn group(&mut self) {
        match self.focus() {
            ViewId::Tree => self.views.tree.group(),
            ViewId::Time => self.views.time.next_rows(),
            ViewId::Flame => {
                let pane = self.in_pane();
                if pane.is_none() {
                    self.remember();
                }
                self.views.flame_in_mut(pane).group();
            }
            _ => {}
        }
    }

    /// What is looked for is on no row or frame of the screen: the function of
    /// that name with most samples is found where it is closed, or too narrow.
    pub(super) fn look_below(&mut self) -> Option<Arc<str>> {
        let (find, ..) = self.find()?;
        let functions = self.shown.report.functions.iter();
        let found = functions
            .filter(|row| find.matches(&row.name))
            .max_by_key(|row| row.total_samples)?;
        let (id, name) = (found.id, Arc::clone(&found.name));
        let pane = self.in_pane();
        match self.focus() {
            ViewId::Tree => self.views.tree_in_mut(pane).link(id),
            ViewId::Flame => self.views.flame_in_mut(pane).look_for(id),
            _ => return None,
        }
        Some(name)
    }

    pub(super) fn select_same_name(&mut self) {
        let pane = self.in_pane();
        if let Some((position, count)) = self.views.flame_in_mut(pane).select_same() {
            self.detail = Detail::Notice(Notice::SameName { position, count });
        }
    }

    pub(super) fn zoom_in(&mut self) {
        let pane = self.in_pane();
        self.views.flame_in_mut(pane).zoom_in();
    }

    pub(super) fn open_hot_path(&mut self) {
        let pane = self.in_pane();
        let steps = self.views.tree_in_mut(pane).open_hot_path();
        self.detail = Detail::Notice(Notice::HotPath(steps));
    }
}
