//! To the page of a function, and from there to others.

use super::App;
use crate::view_id::ViewId;
use crate::views::page::{Follow, Place};
use profile::FunctionId;

impl App {
    /// The function that is selected.
    pub(super) fn function_here(&self) -> Option<FunctionId> {
        if let Some(diff) = self.difference_here() {
            return self.views.difference.selected(diff)?.id;
        }
        match self.focus() {
            ViewId::Functions => {
                let line = self.views.functions.selected(&self.shown.report)?;
                Some(line.row.id)
            }
            ViewId::Tree => self.views.tree_in(self.in_pane()).selected()?.function_id(),
            ViewId::Flame => Some(
                self.views
                    .flame_in(self.in_pane())
                    .selected()?
                    .function
                    .as_ref()?
                    .id,
            ),
            ViewId::Page => self.views.page_in(self.in_pane()).function(),
            ViewId::Code => self.views.code.function(),
            ViewId::Processes | ViewId::Threads | ViewId::Time | ViewId::Health => None,
        }
    }

    pub(super) fn open_page(&mut self) {
        if let Some(function) = self.function_here() {
            self.remember();
            self.views.page.open(Place::new(function));
            self.open(ViewId::Page);
        }
    }

    pub(super) fn follow(&mut self) {
        if self.focus() == ViewId::Code {
            return self.follow_call();
        }
        let (pane, before) = (self.in_pane(), self.place());
        if let Follow::Page(function) = self.views.page_in_mut(pane).follow() {
            self.history.leave(before);
            self.views.page.open(Place::new(function));
            self.open(ViewId::Page);
        }
    }
}
