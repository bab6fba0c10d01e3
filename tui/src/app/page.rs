//! To the page of a function, and from there to others.

use super::App;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::page::Place;
use profile::FunctionId;

impl App {
    /// The function that is selected.
    pub(super) fn function_here(&self) -> Option<FunctionId> {
        let pane = self.pane_here();
        self.views
            .get(pane)
            .selected_function(&self.context_of(pane))?
            .id
    }

    pub(super) fn open_page(&mut self) {
        if let Some(function) = self.function_here() {
            self.remember();
            self.views.page.open(Place::new(function));
            self.open(ViewId::Page);
        } else if self.is_row_gone() {
            self.detail = Detail::Notice(Notice::RowGone);
        }
    }
}
