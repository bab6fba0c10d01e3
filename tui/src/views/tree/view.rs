//! The call tree as the app sees it: its implementation of [`View`].

use super::{Tree, TreePosition, draw};
use crate::action::{Action, FoldAction};
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::views::tree::TreeAnswer;
use crate::views::tree::rows::Fold;
use crate::views::{Done, FunctionHere, View};
use profile::{FunctionId, Role};
use std::any::Any;
use std::sync::Arc;

impl View for Tree {
    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    // The matching rows are counted, not their samples: samples of a row are also in the rows above
    // it, so that a sum would count them several times.
    fn found(&self, _: &Context<'_>) -> Option<Found<'_>> {
        let of = self.side().rows().len();
        Some(Found::of_rows(self.find()?, self.found(), of))
    }

    fn set_find(&mut self, _: &Context<'_>, find: Option<Find>) {
        self.set_find(find);
    }

    fn select_found(&mut self, _: &Context<'_>, down: bool, including: bool) -> Option<usize> {
        self.select_found(down, including)
    }

    // The function may have no row yet. It is searched for in the next tree.
    fn reveal(&mut self, function: FunctionId) -> bool {
        self.link(function);
        true
    }

    fn selected_name(&self, _: &Context<'_>) -> Option<String> {
        Some(self.name(self.selected()?)?.to_string())
    }

    fn selected_function(&self, _: &Context<'_>) -> Option<FunctionHere> {
        let row = self.selected()?;
        // A row that is gone still has a name, but no function of the present tree.
        let id = row.function_id().filter(|_| !row.gone);
        let function = self.function(row);
        let named = function
            .filter(|function| function.role == Role::Function)
            .map(|f| (Arc::clone(&f.name), Arc::clone(&f.module)));
        Some(FunctionHere { id, named })
    }

    fn held_function(&self, _: &Context<'_>) -> Option<Option<FunctionId>> {
        Some(self.side().held_function())
    }

    fn follow_function(&mut self, _: &Context<'_>, function: Option<FunctionId>) {
        if let Some(function) = function {
            self.link(function);
        }
    }

    // Rows are always sorted by samples, so no column can be chosen. Inverting asks for the tree of
    // the other direction.
    fn sort(&mut self, _: &Context<'_>, order: Sort) {
        if order == Sort::Invert {
            self.invert();
        }
    }

    fn counted(&self) -> Option<u64> {
        Some(self.trees()?.now.root().samples)
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

    fn forget_last_seen(&mut self) {
        self.forget_last_seen();
    }

    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.place()))
    }

    fn return_to(&mut self, place: &dyn Any) {
        if let Some(place) = place.downcast_ref::<TreePosition>() {
            self.return_to(place.clone());
        }
    }

    fn act(&mut self, _: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Fold(action) => self.fold(action),
            Action::Group => self.group(),
            Action::HotPath => return Done::Said(Notice::HotPath(self.open_hot_path())),
            _ => return Done::Nothing,
        }
        Done::Here
    }

    // Without a selected row there is nothing to open. On a leaf, closing goes to the row above,
    // and a run can be unfolded.
    fn offers(&self, _: &Context<'_>, action: Action) -> bool {
        let Some(row) = self.selected() else {
            return !matches!(action, Action::Fold(_) | Action::HotPath);
        };
        let is_leaf = row.fold == Fold::Leaf;
        match action {
            Action::HotPath | Action::Fold(FoldAction::Open) => !is_leaf,
            Action::Fold(FoldAction::Toggle) => !is_leaf || !row.run.is_empty(),
            // On a row that is not open, closing goes to the row above.
            Action::Fold(FoldAction::Close) => row.depth > 0 || row.fold == Fold::Open,
            _ => true,
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        draw::explain(self, cx)
    }
}
