//! Tables of processes and of threads as the app sees them: the scope is narrowed to their
//! rows.

use crate::action::Action;
use crate::context::Context;
use crate::geometry;
use crate::knobs::{Narrowing, Part};
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::{Item, Place, Sort, Table};
use crate::views::{Done, View};
use crate::words::explain;
use profile::{Activity, FunctionId};
use std::any::Any;
use std::sync::Arc;

/// A process or a thread: a row that the scope can be narrowed to.
pub trait Person: Item {
    /// The word for several of them, such as `processes`.
    const PLURAL: &'static str;

    /// Returns the part of the samples that belongs to these rows, as the scope has it.
    fn part(keys: Vec<Self::Key>) -> Part;

    /// Its name and number: `postgres[4121]`.
    fn who(&self) -> String;

    /// What it did in each state. None if that was not told.
    fn activity(&self) -> Option<&Activity>;

    /// The name of the function in which it has most samples. None if it has none.
    fn top_function(&self) -> Option<&str>;
}

impl<I: Person> View for Table<I> {
    fn update(&mut self, cx: &Context<'_>, sort: bool) -> bool {
        self.update(&cx.shown.report, sort);
        true
    }

    fn resize(&mut self, _: &Context<'_>, part: &geometry::Part) {
        self.resize(part.height.into());
    }

    fn go(&mut self, cx: &Context<'_>, motion: Motion) {
        self.go(motion, &cx.shown.report);
    }

    fn select_at(&mut self, cx: &Context<'_>, _: u16, line: usize) {
        self.select_line(line, &cx.shown.report);
    }

    fn found(&self, _: &Context<'_>) -> Option<Found<'_>> {
        self.matches()
    }

    fn set_find(&mut self, cx: &Context<'_>, find: Option<Find>) {
        self.set_find(find, &cx.shown.report);
    }

    fn select_found(&mut self, cx: &Context<'_>, down: bool, including: bool) -> Option<usize> {
        self.select_found(down, including, &cx.shown.report)
    }

    fn selected_name(&self, cx: &Context<'_>) -> Option<String> {
        self.selected_name(&cx.shown.report)
    }

    /// The function that the row names as its hottest.
    fn function_for_code(&self, cx: &Context<'_>) -> Option<FunctionId> {
        let selected = self.selected(&cx.shown.report)?;
        let top = selected.row.top_function()?;
        // The row has only the name. Of several functions of this name the first one is
        // taken, which has most samples of its own.
        let mut functions = cx.shown.report.functions.iter();
        functions.find(|row| *row.name == *top).map(|row| row.id)
    }

    fn sort(&mut self, cx: &Context<'_>, order: Sort) {
        self.order(order, &cx.shown.report);
    }

    fn release(&mut self) {
        // The table of all threads keeps its rows, so that it is sorted when it is opened
        // again.
        if self.is_of_one_process() {
            self.release();
        }
    }

    fn forget_last_seen(&mut self) {
        self.forget_last_seen();
    }

    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.place()))
    }

    fn return_to(&mut self, place: &dyn Any) {
        if let Some(place) = place.downcast_ref::<Place<I>>() {
            self.return_to(place.clone());
        }
    }

    fn toggle_mark(&mut self, cx: &Context<'_>) {
        self.toggle_mark(&cx.shown.report);
    }

    fn unmark(&mut self) {
        self.unmark();
    }

    fn marked(&self) -> usize {
        self.marked()
    }

    // All rows that are marked or, without a mark, the selected one.
    fn narrowing(&self, cx: &Context<'_>) -> Option<Narrowing> {
        let (keys, words) = self.chosen(&cx.shown.report, I::PLURAL)?;
        Some(Narrowing {
            part: I::part(keys),
            words,
        })
    }

    fn act(&mut self, cx: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Family => self.toggle_family(&cx.shown.report),
            _ => return Done::Nothing,
        }
        Done::Here
    }

    fn offers(&self, cx: &Context<'_>, action: Action) -> bool {
        match action {
            Action::Narrow | Action::MarkRow => {
                let selected = self.selected(&cx.shown.report);
                self.marked() > 0 || selected.is_some_and(|line| !line.gone)
            }
            _ => true,
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        let line = self.selected(&cx.shown.report)?;
        let (samples, who) = (line.row.samples(), line.row.who());
        Some(match line.gone {
            true => explain::gone(cx, samples, &who),
            false => match line.row.activity() {
                Some(activity) => explain::activity(cx, samples, &who, activity),
                None => explain::cpus(cx, samples, &who),
            },
        })
    }
}
