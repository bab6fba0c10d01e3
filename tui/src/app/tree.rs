//! The tree comes a moment after the snapshot that it is of: it is asked for,
//! and shown when no hand is at the keys.

use super::{App, Effect};
use crate::screen::tree::{FoldAction, TreeAnswer};
use crate::screen::{Detail, Notice, View};
use std::sync::Arc;

impl App {
    pub(super) fn receive_tree(&mut self, answer: Arc<TreeAnswer>) {
        let is_calm = self.frozen.is_none() && self.calm.may_sort(self.now);
        if self.views.tree.receive(answer, is_calm) {
            self.calm.sorted(self.now);
        }
    }

    pub(super) fn take_waiting_tree(&mut self) {
        let is_calm = self.frozen.is_none() && self.calm.may_sort(self.now);
        if is_calm && self.views.tree.take_waiting() {
            self.calm.sorted(self.now);
        }
    }

    /// What the tree needs to follow the shown snapshot.
    pub(super) fn ask(&mut self) -> Option<Effect> {
        if self.view != View::Tree {
            return None;
        }
        let question = self.views.tree.question(&self.shown)?;
        Some(Effect::AskTree(question))
    }

    /// Where the selected function is called from.
    pub(super) fn open_callers(&mut self) {
        let Some(line) = self.views.functions.selected(&self.shown.report) else {
            return;
        };
        let (function, was_on_top) = (line.row.id, line.row.self_samples > 0);
        self.open(View::Tree);
        self.back = Some(View::Functions);
        self.views.tree.look_for(function, was_on_top);
    }

    pub(super) fn fold(&mut self, action: FoldAction) {
        self.views.tree.fold(action);
    }

    pub(super) fn open_hot_path(&mut self) {
        let steps = self.views.tree.open_hot_path();
        self.detail = Detail::Notice(Notice::HotPath(steps));
    }
}
