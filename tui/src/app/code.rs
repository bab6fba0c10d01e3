//! To the code of a function, and from there to what it calls.

use super::App;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::view_id::ViewId;
use profile::FunctionId;

impl App {
    /// The code of the selected function; of the open one, looked for anew.
    pub(super) fn open_code(&mut self) {
        let pane = self.pane_here();
        let here = self
            .views
            .get(pane)
            .function_for_code(&self.context_of(pane));
        if here.is_none() {
            self.detail = Detail::Notice(match self.is_row_gone() {
                true => Notice::RowGone,
                false => Notice::NothingSelected,
            });
            return;
        }
        if self.view != ViewId::Code {
            self.remember();
            self.leave_view();
            self.release();
            self.view = ViewId::Code;
            self.refresh(true);
        }
        self.open_code_of(here);
    }

    pub(super) fn open_code_of(&mut self, function: Option<FunctionId>) {
        if let Some(function) = function {
            let function = self.current(function);
            self.views.code.open(function);
        }
    }

    /// Opens the code of another function, and remembers the way back.
    pub(super) fn go_to_code_of(&mut self, function: FunctionId) {
        self.remember();
        self.open_code_of(Some(function));
    }

    /// What is on disk may be other text now.
    pub(super) fn handle_edited(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.views.code.look_again(),
            Err(why) => self.detail = Detail::Notice(Notice::NotEdited(why)),
        }
    }
}
