//! Opens the page of a function.

use super::App;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::view_id::ViewId;
use crate::views::page::PagePosition;

impl App {
    /// Opens the page of the selected function.
    pub(super) fn open_page(&mut self) {
        if let Some(function) = self.function_here() {
            self.remember();
            self.views.page.open(PagePosition::new(function));
            self.open(ViewId::Page);
        } else if self.is_row_gone() {
            self.lines.detail = Detail::Notice(Notice::RowGone);
        }
    }
}
