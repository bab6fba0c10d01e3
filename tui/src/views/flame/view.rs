//! The flame graph as the app sees it: its implementation of [`View`].

use super::{Flame, FlamePosition, words};
use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::views::tree::TreeAnswer;
use crate::views::{Done, FunctionHere, View};
use profile::{FunctionId, Role};
use std::any::Any;
use std::sync::Arc;

impl View for Flame {
    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.width, part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, column: u16, line: usize) {
        self.select_cell(column, line);
    }

    // A match below another match adds no samples, because the upper one has counted them.
    fn found(&self, _: &Context<'_>) -> Option<Found<'_>> {
        let (rows, samples) = self.found();
        Some(Found {
            find: self.find()?,
            rows,
            samples,
            of: self.bar_count(),
        })
    }

    fn set_find(&mut self, _: &Context<'_>, find: Option<Find>) {
        self.set_find(find);
    }

    fn select_found(&mut self, _: &Context<'_>, down: bool, including: bool) -> Option<usize> {
        self.select_found(down, including)
    }

    fn reveal(&mut self, function: FunctionId) -> bool {
        self.look_for(function);
        true
    }

    fn selected_name(&self, _: &Context<'_>) -> Option<String> {
        Some(self.selected()?.name.to_string())
    }

    fn selected_function(&self, _: &Context<'_>) -> Option<FunctionHere> {
        let function = self.selected()?.function.as_ref()?;
        // Bars for missing frames have a name, but do not stand for a function.
        let is_real = function.role == Role::Function;
        let named = is_real.then(|| (Arc::clone(&function.name), Arc::clone(&function.module)));
        Some(FunctionHere {
            id: Some(function.id),
            named,
        })
    }

    fn held_function(&self, _: &Context<'_>) -> Option<Option<FunctionId>> {
        Some(self.held_function())
    }

    fn follow_function(&mut self, _: &Context<'_>, function: Option<FunctionId>) {
        if let Some(function) = function {
            self.look_for(function);
        }
    }

    fn sort(&mut self, _: &Context<'_>, order: Sort) {
        if order == Sort::Invert {
            self.invert();
        }
    }

    fn counted(&self) -> Option<u64> {
        Some(self.tree()?.root().samples)
    }

    fn question(&mut self, cx: &Context<'_>) -> Option<Question> {
        self.question(cx.shown).map(Question::new)
    }

    fn awaits_rows(&self) -> bool {
        self.desk.awaits_first()
    }

    fn receive(&mut self, answer: &Answer, is_calm: bool) -> bool {
        let answer = answer.of::<TreeAnswer>();
        answer.is_some_and(|answer| self.receive(answer, is_calm))
    }

    fn take_waiting(&mut self) -> bool {
        self.take_waiting()
    }

    fn release(&mut self) {
        self.release();
    }

    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.place()))
    }

    fn return_to(&mut self, place: &dyn Any) {
        if let Some(place) = place.downcast_ref::<FlamePosition>() {
            self.return_to(place.clone());
        }
    }

    /// Undoes a zoom that was made after the last step of the history.
    fn close_innermost(&mut self, before: Option<&dyn Any>) -> bool {
        let before = before.and_then(|place| place.downcast_ref::<FlamePosition>());
        self.has_zoomed_since(before.map_or(0, FlamePosition::zooms)) && self.zoom_out()
    }

    /// These actions leave the zoom, so that the history needs a step to come back to it.
    fn is_a_step(&self, action: Action) -> bool {
        matches!(action, Action::Invert | Action::Group)
    }

    fn act(&mut self, _: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Group => self.group(),
            Action::Runs => return Done::Said(Notice::Runs(self.toggle_runs())),
            Action::Zoom => self.zoom_in(),
            Action::Left => self.go_sideways(false),
            Action::Right => self.go_sideways(true),
            Action::SameName => {
                if let Some((position, count)) = self.select_same() {
                    return Done::Said(Notice::SameName { position, count });
                }
            }
            _ => return Done::Nothing,
        }
        Done::Here
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        words::explain(self, cx)
    }
}
