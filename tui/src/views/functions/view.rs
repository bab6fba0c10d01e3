//! The functions as the app sees them: the list, or the difference from the baseline.

use super::{Functions, difference, words};
use crate::context::Context;
use crate::geometry::ViewArea;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::{Sort, TablePosition};
use crate::views::{FunctionHere, View};
use crate::words::metric::metric_told;
use profile::{FunctionId, FunctionRow, Role};
use std::any::Any;
use std::sync::Arc;

impl View for Functions {
    fn update(&mut self, cx: &Context<'_>, sort: bool) -> bool {
        self.table.update(&cx.shown.report, sort);
        if let Some(diff) = &cx.shown.comparison.functions {
            self.difference.update(diff);
        }
        true
    }

    fn resize(&mut self, cx: &Context<'_>, part: &ViewArea) {
        self.table.resize(part.height.into(), &cx.shown.report);
        self.difference.resize(part.height.into());
    }

    fn go(&mut self, cx: &Context<'_>, motion: Motion) {
        match cx.difference() {
            Some(_) => self.difference.go(motion),
            None => self.table.go(motion, &cx.shown.report),
        }
    }

    fn select_at(&mut self, cx: &Context<'_>, _: u16, line: usize) {
        match cx.difference() {
            Some(_) => self.difference.select_line(line),
            None => self.table.select_line(line, &cx.shown.report),
        }
    }

    // The list of differences has no search.
    fn found(&self, cx: &Context<'_>) -> Option<Found<'_>> {
        if cx.difference().is_some() {
            return None;
        }
        self.table.matches()
    }

    fn set_find(&mut self, cx: &Context<'_>, find: Option<Find>) {
        self.table.set_find(find, &cx.shown.report);
    }

    fn select_found(&mut self, cx: &Context<'_>, down: bool, including: bool) -> Option<usize> {
        self.table.select_found(down, including, &cx.shown.report)
    }

    fn selected_name(&self, cx: &Context<'_>) -> Option<String> {
        match cx.difference() {
            Some(diff) => Some(self.difference.selected(diff)?.name.to_string()),
            None => self.table.selected_name(&cx.shown.report),
        }
    }

    fn selected_function(&self, cx: &Context<'_>) -> Option<FunctionHere> {
        let (id, name, module) = match cx.difference() {
            Some(diff) => {
                let row = self.difference.selected(diff)?;
                (row.id, &row.name, &row.module)
            }
            None => {
                let line = self.table.selected(&cx.shown.report)?;
                let row = line.row;
                ((!line.gone).then_some(row.id), &row.name, &row.module)
            }
        };
        // `[hidden]` and the ends of stacks have rows, but are not functions.
        let is_real = id.is_none_or(|id| Role::of(id) == Role::Function);
        let named = is_real.then(|| (Arc::clone(name), Arc::clone(module)));
        Some(FunctionHere { id, named })
    }

    fn held_function(&self, cx: &Context<'_>) -> Option<Option<FunctionId>> {
        match cx.difference() {
            // While the first row is selected only because it is the first, no function is held:
            // another view must not follow whatever function is first.
            Some(_) if !self.difference.is_held() => Some(None),
            Some(_) => Some(self.selected_function(cx).and_then(|function| function.id)),
            None => Some(self.table.held()),
        }
    }

    fn follow_function(&mut self, cx: &Context<'_>, function: Option<FunctionId>) {
        if let Some(function) = function {
            self.table.select_key(function, &cx.shown.report);
        }
    }

    fn sort(&mut self, cx: &Context<'_>, order: Sort) {
        if cx.difference().is_none() {
            self.table.order(order, &cx.shown.report);
        }
    }

    fn forget_last_seen(&mut self) {
        self.table.forget_last_seen();
    }

    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.table.place()))
    }

    fn return_to(&mut self, place: &dyn Any) {
        if let Some(place) = place.downcast_ref::<TablePosition<FunctionRow>>() {
            self.table.return_to(place.clone());
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        if let Some(diff) = cx.difference() {
            return Some(difference::draw::explain(
                &self.difference,
                diff,
                metric_told(cx),
            ));
        }
        let line = self.table.selected(&cx.shown.report)?;
        Some(if line.gone {
            words::of_gone(cx, line.row)
        } else {
            words::of_function(cx, line.row, self.table.column())
        })
    }
}
