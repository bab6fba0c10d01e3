//! The code view as the app sees it: its implementation of [`View`].

use super::{Code, CodeAnswer, CodePosition, Follow, NoSource, words};
use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::notice::Notice;
use crate::views::{Done, FunctionHere, View};
use crate::words::fit::Segment;
use profile::{FunctionId, Role};
use std::any::Any;
use std::sync::Arc;

impl View for Code {
    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.width, part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    // The matching rows are counted, not their samples: the same samples may be in a line and in
    // its instructions.
    fn found(&self, _: &Context<'_>) -> Option<Found<'_>> {
        let (rows, of) = self.found();
        Some(Found::of_rows(self.find()?, rows, of))
    }

    fn set_find(&mut self, _: &Context<'_>, find: Option<Find>) {
        self.set_find(find);
    }

    fn select_found(&mut self, _: &Context<'_>, down: bool, including: bool) -> Option<usize> {
        self.select_found(down, including)
    }

    fn selected_name(&self, _: &Context<'_>) -> Option<String> {
        self.text_here()
    }

    fn selected_function(&self, _: &Context<'_>) -> Option<FunctionHere> {
        let function = self.answer().map(|answer| &answer.function);
        let named = function.filter(|function| function.role == Role::Function);
        Some(FunctionHere {
            id: self.function(),
            named: named.map(|f| (Arc::clone(&f.name), Arc::clone(&f.module))),
        })
    }

    fn held_function(&self, _: &Context<'_>) -> Option<Option<FunctionId>> {
        // If no code was opened, the selection of the view before stays.
        self.function().map(Some)
    }

    fn follow_function(&mut self, _: &Context<'_>, function: Option<FunctionId>) {
        if let Some(function) = function {
            self.open(function);
        }
    }

    fn about(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.answer()?.function.name))
    }

    fn trust(&self) -> Option<Vec<Segment>> {
        self.answer().map(|_| words::trust(self))
    }

    fn question(&mut self, cx: &Context<'_>) -> Option<Question> {
        if cx.is_beside {
            // The pane with the source text asks for both.
            return None;
        }
        self.question(cx.shown).map(Question::new)
    }

    fn awaits_rows(&self) -> bool {
        self.desk.awaits_first()
    }

    fn receive(&mut self, answer: &Answer, is_calm: bool) -> bool {
        let answer = answer.of::<CodeAnswer>();
        answer.is_some_and(|answer| self.receive(answer, is_calm))
    }

    fn take_waiting(&mut self) -> bool {
        self.take_waiting()
    }

    fn release(&mut self) {
        self.release();
    }

    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.place()?))
    }

    fn return_to(&mut self, place: &dyn Any) {
        if let Some(place) = place.downcast_ref::<CodePosition>() {
            self.return_to(place.clone());
        }
    }

    fn act(&mut self, _: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Layout => {
                self.next_layout();
                Done::Here
            }
            Action::HotNext | Action::HotPrevious => {
                let place = self.go_hot(action == Action::HotNext);
                Done::Said(Notice::HotLine(place))
            }
            Action::Follow => match self.follow() {
                Follow::Code(function) => Done::OpenCode(function),
                // An instruction names the function that it calls. That function may have no
                // samples, and then has no row to open.
                Follow::Name(name) => Done::OpenCodeNamed {
                    name,
                    module: self.answer().map(|answer| answer.function.module.clone()),
                },
                Follow::Row(at) => {
                    self.jump_to(at);
                    Done::Here
                }
                Follow::Nothing => Done::Said(Notice::NothingCalled),
            },
            Action::Edit => match self.source_here() {
                Ok((path, line)) => Done::Edit(path, line),
                Err(NoSource) => Done::Said(Notice::NoSource),
            },
            _ => Done::Nothing,
        }
    }

    fn offers(&self, _: &Context<'_>, action: Action) -> bool {
        match action {
            Action::Follow => self.follow() != Follow::Nothing,
            Action::Edit => self.source_here().is_ok(),
            Action::Layout => self.has_layouts(),
            // The code is already open.
            Action::Code => false,
            _ => true,
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        words::explain(self, cx)
    }
}
