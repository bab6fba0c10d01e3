//! The page of a function as the app sees it: its implementation of [`View`].

use super::{Follow, Page, PageAnswer, PagePosition, words};
use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::views::{Done, FunctionHere, View};
use profile::{FunctionId, Role};
use std::any::Any;
use std::sync::Arc;

impl View for Page {
    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.width, part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    // The matching rows are counted, not their samples: a sample has both a caller and a callee of
    // the function, so a sum would count it twice.
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
        Some(self.selected_function()?.name.to_string())
    }

    /// Returns the id of the page's function, and the name of the function in the selected row.
    fn selected_function(&self, _: &Context<'_>) -> Option<FunctionHere> {
        let selected = self.selected_function();
        let named = selected.filter(|function| function.role == Role::Function);
        Some(FunctionHere {
            id: self.function(),
            named: named.map(|f| (Arc::clone(&f.name), Arc::clone(&f.module))),
        })
    }

    fn function_for_code(&self, _: &Context<'_>) -> Option<FunctionId> {
        self.selected_function().map(|function| function.id)
    }

    fn held_function(&self, _: &Context<'_>) -> Option<Option<FunctionId>> {
        Some(self.function())
    }

    fn about(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.answer()?.function.name))
    }

    fn counted(&self) -> Option<u64> {
        Some(self.answer()?.samples)
    }

    fn question(&mut self, cx: &Context<'_>) -> Option<Question> {
        self.question(cx.shown).map(Question::new)
    }

    fn awaits_rows(&self) -> bool {
        self.desk.awaits_first()
    }

    fn receive(&mut self, answer: &Answer, is_calm: bool) -> bool {
        let answer = answer.of::<PageAnswer>();
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
        if let Some(place) = place.downcast_ref::<PagePosition>() {
            self.open(place.clone());
        }
    }

    fn act(&mut self, _: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Follow => match self.follow() {
                Follow::Page(function) => Done::OpenPage(function),
                _ => Done::Here,
            },
            Action::CopyStack => self.stack().map_or(Done::Here, Done::Copy),
            _ => Done::Nothing,
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        words::explain(self, cx)
    }
}
