//! To the code of a function, and from there to what it calls.

use super::{App, Effect};
use crate::app::mode::{Detail, Notice};
use crate::view_id::ViewId;
use crate::views::code::{Follow, NoSource};
use profile::FunctionId;

impl App {
    /// The code of the selected function; of the open one, looked for anew.
    pub(super) fn open_code(&mut self) {
        let here = match self.focus() {
            ViewId::Page => {
                let page = self.views.page_in(self.in_pane());
                page.selected_function().map(|f| f.id)
            }
            _ => self.function_here(),
        };
        if here.is_none() {
            self.detail = Detail::Notice(Notice::NothingSelected);
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

    pub(super) fn follow_call(&mut self) {
        match self.views.code_in(self.in_pane()).follow() {
            Follow::Code(function) => self.leave_for(function),
            Follow::Name(name) => {
                let module = self.views.code.answer().map(|a| a.function.module.clone());
                let mut rows = self.shown.report.functions.iter();
                let named =
                    rows.find(|row| row.name == name && Some(&row.module) == module.as_ref());
                match named.map(|row| row.id) {
                    Some(function) => self.leave_for(function),
                    None => self.detail = Detail::Notice(Notice::Unsampled(name.to_string())),
                }
            }
            Follow::Row(at) => {
                let pane = self.in_pane();
                self.views.code_in_mut(pane).jump_to(at);
            }
            Follow::Nothing => self.detail = Detail::Notice(Notice::NothingCalled),
        }
    }

    fn leave_for(&mut self, function: FunctionId) {
        self.remember();
        self.open_code_of(Some(function));
    }

    pub(super) fn next_syntax(&mut self) {
        self.views.code.next_syntax();
        let name = self.views.code.syntax().name();
        self.detail = Detail::Notice(Notice::Syntax(name));
    }

    pub(super) fn go_hot(&mut self, down: bool) {
        let pane = self.in_pane();
        let place = self.views.code_in_mut(pane).go_hot(down);
        self.detail = Detail::Notice(Notice::HotLine(place));
    }

    pub(super) fn edit(&mut self) -> Vec<Effect> {
        match self.views.code_in(self.in_pane()).source_here() {
            Ok((path, line)) => vec![Effect::Edit(path, line)],
            Err(NoSource) => {
                self.detail = Detail::Notice(Notice::NoSource);
                Vec::new()
            }
        }
    }

    /// What is on disk may be other text now.
    pub(super) fn hear_edited(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.views.code.look_again(),
            Err(why) => self.detail = Detail::Notice(Notice::NotEdited(why)),
        }
    }
}
