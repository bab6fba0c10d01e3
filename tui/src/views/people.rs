//! Tables of processes and of threads as the app sees them: the scope is narrowed to their
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
use profile::{Activity, Family, FunctionId, ProcessRow, Report, TREND_LEN};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// What there is to say of a row that the profile does not have.
pub const NOT_COUNTED: &str = "has no samples: it is shown because others descend from it";

/// A process or a thread: a row that the scope can be narrowed to.
pub trait Person: Item {
    /// The word for several of them, such as `processes`.
    const PLURAL: &'static str;

    /// Returns the part of the samples that belongs to these rows, as the scope has it.
    fn part(keys: Vec<Self::Key>) -> CountedAlone;

    /// Returns the part of the samples that belongs to a whole group. None if it is that of
    /// its rows.
    fn part_of_group(&self, _by: By) -> Option<CountedAlone> {
        None
    }

    /// Returns the part of the samples that belongs to the row and all that descend from it. None
    /// if none in the report does.
    fn part_of_family(&self, _report: &Report) -> Option<CountedAlone> {
        None
    }

    /// Whether the profile has it. Others are only shown because some descend from them.
    fn is_counted(&self) -> bool {
        true
    }

    /// What it did in each state. None if that was not told.
    fn activity(&self) -> Option<&Activity>;

    /// For whom it waits and waited, in words. None where nobody is known.
    fn waited_for(&self, _cx: &Context<'_>) -> Option<String> {
        None
    }

    /// The name of the function in which it has most samples. None if it has none.
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

    // All rows that are marked or, without a mark, the selected one.
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
                // Without samples of its own it is shown in the tree alone, and has a family.
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
                    // A sum of several waits for nobody in particular.
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

/// Whether a process belongs to one of the families.
pub fn is_of(row: &ProcessRow, families: &[Family]) -> bool {
    Family::any_has(families, row.pid, &row.details)
}

/// Whether processes of several machines are in a report.
pub fn are_of_several_machines(report: &Report) -> bool {
    let mut hosts = report.processes.iter().map(|row| &row.details.host);
    let first = hosts.next();
    first.is_some_and(|first| hosts.any(|host| host != first))
}

/// Returns what several did together. None if it was told of none.
pub fn sum_of_activities<'a>(all: impl Iterator<Item = &'a Activity>) -> Option<Activity> {
    all.fold(None, |sum: Option<Activity>, activity| {
        let mut sum = sum.unwrap_or_default();
        sum.add(activity);
        Some(sum)
    })
}

/// Returns the samples of several, second by second.
pub fn sum_of_trends<'a>(all: impl Iterator<Item = &'a [u64; TREND_LEN]>) -> [u64; TREND_LEN] {
    let mut sum = [0u64; TREND_LEN];
    for trend in all {
        for (sum, samples) in sum.iter_mut().zip(trend) {
            *sum = sum.saturating_add(*samples);
        }
    }
    sum
}

/// What a row is named by: its top function, and what that waited for most.
pub type Top<'a> = (&'a Option<Arc<str>>, &'a Option<Arc<str>>);

/// Returns the top function of those that have most samples together, given the top function
/// and the samples of each, and what it waited for in those. Which functions they ran besides is
/// not known here.
pub fn top_of<'a>(
    all: impl Iterator<Item = (Top<'a>, u64)> + Clone,
) -> (Option<Arc<str>>, Option<Arc<str>>) {
    let named = all.clone().map(|((name, _), samples)| (name, samples));
    let Some(top) = most(named) else {
        return (None, None);
    };
    let is_top = |name: &Option<Arc<str>>| name.as_ref() == Some(&top);
    let waits = all.filter(|((name, _), _)| is_top(name));
    let wait = most(waits.map(|((_, wait), samples)| (wait, samples)));
    (Some(top), wait)
}

/// Returns the name with most samples.
fn most<'a>(all: impl Iterator<Item = (&'a Option<Arc<str>>, u64)>) -> Option<Arc<str>> {
    let mut sums: HashMap<&Arc<str>, u64> = HashMap::new();
    for (name, samples) in all {
        if let Some(name) = name {
            *sums.entry(name).or_default() += samples;
        }
    }
    let most = sums
        .into_iter()
        .max_by_key(|(name, samples)| (*samples, Reverse(*name)));
    most.map(|(name, _)| Arc::clone(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_function_of_several_is_that_of_most_samples() {
        let (hash, scan) = (Some("hash".into()), Some("scan".into()));
        let top = |all: &[(&Option<Arc<str>>, u64)]| most(all.iter().copied());
        assert_eq!(top(&[(&hash, 5), (&scan, 4), (&scan, 3)]), scan);
        assert_eq!(top(&[(&hash, 9), (&scan, 4), (&scan, 3)]), hash);
        // Of two with as many samples it is always the same.
        assert_eq!(top(&[(&scan, 4), (&hash, 4)]), hash);
        assert_eq!(top(&[(&None, 4)]), None);
        // What another function waits for is not its business.
        let (lock, sleep) = (
            Some("[waiting: lock]".into()),
            Some("[waiting: sleep]".into()),
        );
        let all = [
            ((&hash, &lock), 5),
            ((&scan, &sleep), 4),
            ((&hash, &None), 3),
        ];
        assert_eq!(top_of(all.into_iter()), (hash.clone(), lock.clone()));
    }

    #[test]
    fn sums_are_of_all_and_what_is_not_told_is_no_zero() {
        let mut run = Activity::default();
        run.ns[0] = 3;
        let sum = sum_of_activities([run, run].iter());
        assert_eq!(sum.map(|sum| sum.ns[0]), Some(6));
        assert_eq!(sum_of_activities([].iter()), None);
        let (mut first, mut second) = ([0; TREND_LEN], [1; TREND_LEN]);
        (first[9], second[0]) = (7, u64::MAX);
        let mut expected = [1; TREND_LEN];
        (expected[0], expected[9]) = (u64::MAX, 8);
        assert_eq!(sum_of_trends([first, second].iter()), expected);
        second[0] = 1;
        assert_eq!(sum_of_trends([second, second].iter()), [2; TREND_LEN]);
    }
}
