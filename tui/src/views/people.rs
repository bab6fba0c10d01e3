//! Tables of processes and of threads as the app sees them. The user can narrow the scope to their
//! rows.

use crate::action::Action;
use crate::context::Context;
use crate::geometry;
use crate::knobs::{CountedAlone, Narrowing};
use crate::lists::find::{Find, Found};
use crate::lists::groups::By;
use crate::lists::motion::Motion;
use crate::lists::table::{Item, Line, Sort, Table, TablePosition};
use crate::views::{Done, View};
use crate::words::explain;
use profile::{Activity, FunctionId, Report};
use std::any::Any;
use std::sync::Arc;

/// The explanation of a row that is not in the profile.
pub const NOT_COUNTED: &str = "has no samples: it is shown because others descend from it";

/// A process or a thread: a row that the scope can be narrowed to.
pub trait Person: Item {
    /// The word for several of them, such as `processes`.
    const PLURAL: &'static str;

    /// Returns what the scope becomes if it is narrowed to these rows.
    fn part(keys: Vec<Self::Key>) -> CountedAlone;

    /// Returns what the scope becomes if it is narrowed to a whole group, or `None` if that is the
    /// same as narrowing it to the rows of the group.
    fn part_of_group(&self, _by: By) -> Option<CountedAlone> {
        None
    }

    /// Returns what the scope becomes if it is narrowed to the row and all its descendants, or
    /// `None` if the report has no descendants of it.
    fn part_of_family(&self, _report: &Report) -> Option<CountedAlone> {
        None
    }

    /// Whether the row is in the profile. Other rows are shown only because rows with samples
    /// descend from them.
    fn is_counted(&self) -> bool {
        true
    }

    /// Returns how long it was in each state, or `None` if that was not recorded.
    fn activity(&self) -> Option<&Activity>;

    /// Returns in words for whom it waits and waited, or `None` if that is not known.
    fn waited_for(&self, _cx: &Context<'_>) -> Option<String> {
        None
    }

    /// Returns the name of the function in which it has most samples, if it has any.
    fn top_function(&self) -> Option<&str>;
}

impl<I: Person> View for Table<I> {
    fn update(&mut self, cx: &Context<'_>, sort: bool) -> bool {
        self.update(&cx.shown.report, sort);
        true
    }

    fn resize(&mut self, cx: &Context<'_>, part: &geometry::ViewArea) {
        self.resize(part.height.into(), &cx.shown.report);
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

    /// Returns the function that the row names as its hottest.
    fn function_for_code(&self, cx: &Context<'_>) -> Option<FunctionId> {
        let selected = self.selected(&cx.shown.report)?;
        let top = selected.row.top_function()?;
        // The row has only the name. Of several functions with this name the first one is taken,
        // which has the most self samples.
        let mut functions = cx.shown.report.functions.iter();
        functions.find(|row| *row.name == *top).map(|row| row.id)
    }

    fn sort(&mut self, cx: &Context<'_>, order: Sort) {
        self.order(order, &cx.shown.report);
    }

    fn release(&mut self) {
        // The table of all threads keeps its rows, so that it is still sorted when it is opened
        // again.
        if self.is_of_some_processes() {
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
        if let Some(place) = place.downcast_ref::<TablePosition<I>>() {
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

    // Narrows to all marked rows or, if none is marked, to the selected one.
    fn narrowing(&self, cx: &Context<'_>) -> Option<Narrowing> {
        let (keys, words) = self.chosen(&cx.shown.report, I::PLURAL)?;
        let by = self.grouping().filter(|_| self.marked() == 0);
        let selected = self.selected(&cx.shown.report);
        if self.is_family() && self.marked() == 0 {
            let family = selected.as_ref()?.row.part_of_family(&cx.shown.report);
            if let Some(part) = family {
                let words = format!("{words} and its children").into();
                return Some(Narrowing { part, words });
            }
        }
        let part = by.and_then(|by| selected?.row.part_of_group(by));
        if let Some(part) = part {
            return Some(Narrowing { part, words });
        }
        Some(Narrowing {
            part: I::part(keys),
            words,
        })
    }

    fn act(&mut self, cx: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Family => self.toggle_family(&cx.shown.report),
            Action::Group => self.next_grouping(&cx.shown.report),
            _ => return Done::Nothing,
        }
        Done::Here
    }

    fn offers(&self, cx: &Context<'_>, action: Action) -> bool {
        match action {
            Action::Narrow | Action::MarkRow => {
                let selected = self.selected(&cx.shown.report);
                // A row without own samples is shown only in the tree. It can be narrowed to
                // together with its descendants.
                let has_family = action == Action::Narrow && self.is_family();
                let can_be =
                    |line: &Line<'_, I>| !line.gone && (line.row.is_counted() || has_family);
                self.marked() > 0 || selected.as_ref().is_some_and(can_be)
            }
            _ => true,
        }
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        let line = self.selected(&cx.shown.report)?;
        let (samples, who) = (line.row.samples(), line.words());
        if !line.row.is_counted() {
            return Some(format!("{who} {NOT_COUNTED}"));
        }
        Some(if line.gone {
            explain::gone(cx, samples, &who)
        } else {
            match line.row.activity() {
                Some(activity) => {
                    // A sum of several rows has no common thread that it waits for.
                    let one = Some(line.row).filter(|_| line.count() == 1);
                    let waited_for = one.and_then(|row| row.waited_for(cx));
                    let told = explain::activity(cx, samples, &who, activity);
                    match waited_for {
                        Some(waited_for) => format!("{who}: {waited_for}; {told}"),
                        None => told,
                    }
                }
                None => explain::cpus(cx, samples, &who),
            }
        })
    }
}
