//! Opens the code of functions.

use super::App;
use crate::app::mode::Detail;
use crate::notice::Notice;
use crate::view_id::ViewId;
use profile::FunctionId;

impl App {
    /// Opens the code of the selected function. In the code view, its files are read again.
    pub(super) fn open_code(&mut self) {
        let here = self.function_for_code();
        if here.is_none() {
            self.lines.detail = Detail::Notice(if self.is_row_gone() {
                Notice::RowGone
            } else {
                Notice::NothingSelected
            });
            return;
        }
        // In the code view it is already open; opening it again reads its files again.
        if self.view != ViewId::Code {
            self.remember();
            self.leave_view();
            self.release();
            self.view = ViewId::Code;
            self.refresh(true);
        }
        self.open_code_of(here);
    }

    /// Returns the function whose code is opened from the view that has the keys, or `None` if its
    /// selected row is not about a function.
    pub(super) fn function_for_code(&self) -> Option<FunctionId> {
        let pane = self.pane_here();
        let view = self.views.get(pane);
        view.function_for_code(&self.context_of(pane))
    }

    /// Lets the code view show a function, without opening the view. `None` does nothing.
    pub(super) fn open_code_of(&mut self, function: Option<FunctionId>) {
        if let Some(function) = function {
            let function = self.current(function);
            self.views.code.open(function);
        }
    }

    /// Opens the code of another function, and puts the present position into the history.
    pub(super) fn go_to_code_of(&mut self, function: FunctionId) {
        self.remember();
        self.open_code_of(Some(function));
    }

    /// Handles the end of the editor: reads the source text again, because it may have changed, or
    /// shows why the editor could not be started.
    pub(super) fn handle_edited(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.views.code.look_again(),
            Err(why) => self.lines.detail = Detail::Notice(Notice::NotEdited(why)),
        }
    }
}
