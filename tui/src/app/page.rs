//! To the page of a function, and from there to others.

use super::App;
use crate::screen::View;
use crate::screen::page::{Follow, Place};
use profile::FunctionId;

impl App {
    /// The function that is selected.
    pub(super) fn function_here(&self) -> Option<FunctionId> {
        if let Some(diff) = self.difference_here() {
            return self.views.difference.selected(diff)?.id;
        }
        match self.focus() {
            View::Functions => {
                let line = self.views.functions.selected(&self.shown.report)?;
                Some(line.row.id)
            }
            View::Tree => self.views.tree_in(self.in_pane()).selected()?.function_id(),
            View::Flame => Some(
                self.views
                    .flame_in(self.in_pane())
                    .selected()?
                    .function
                    .as_ref()?
                    .id,
            ),
            View::Page => self.views.page_in(self.in_pane()).function(),
            View::Code => self.views.code.function(),
            View::Processes | View::Threads | View::Time | View::Health => None,
        }
    }

    pub(super) fn open_page(&mut self) {
        if let Some(function) = self.function_here() {
            self.remember();
            self.views.page.open(Place::new(function));
            self.open(View::Page);
        }
    }

    pub(super) fn follow(&mut self) {
        if self.focus() == View::Code {
            return self.follow_call();
        }
        let (pane, before) = (self.in_pane(), self.place());
        if let Follow::Page(function) = self.views.page_in_mut(pane).follow() {
            self.history.leave(before);
            self.views.page.open(Place::new(function));
            self.open(View::Page);
        }
    }
}
