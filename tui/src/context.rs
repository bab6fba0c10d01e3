//! The *context*: what all views share, handed to a view when it is drawn or handles
//! something. What belongs to one view alone is in that view's state.

use crate::action::{Action, Keymap};
use crate::knobs::{Knobs, Unit};
use crate::view_id::{Feature, ViewId};
use engine::snapshot::{Run, Snapshot};
use profile::Metric;
use profile::diff::Diff;
use std::sync::Arc;

/// What all views share. It is made anew for each call.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What is drawn: one snapshot for every view of a frame.
    pub shown: &'a Snapshot,
    pub knobs: &'a Knobs,
    pub keymap: &'a Keymap,
    /// The open view. What is shown beside it may be another one.
    pub open: ViewId,
    /// The view that has the keys.
    pub focus: ViewId,
    /// Whether this context is of what is shown beside the open view.
    pub is_beside: bool,
    /// Whether the view of this context has the keys.
    pub has_keys: bool,
    /// Whether rows keep their places for a moment, as the user presses keys, though their numbers
    /// have changed.
    pub is_order_held: bool,
    /// proftop's own process, which is marked among the others.
    pub own_pid: Option<u32>,
}

impl<'a> Context<'a> {
    /// Returns the unit of the open view, in which what is beside it counts as well. It is
    /// the usual unit if the one that was asked for needs a time that is not known, and
    /// that of the differences beside which the numbers stand.
    pub fn unit(&self) -> Unit {
        if let Some(unit) = self.unit_of_difference() {
            return unit;
        }
        let usual = Unit::usual(self.open);
        let asked = self.knobs.unit.unwrap_or(usual);
        if asked.needs_time() && self.shown.report.samples > 0 && !self.has_time() {
            usual
        } else {
            asked
        }
    }

    /// Returns the unit of a comparison with the baseline, if the open view shows one: time
    /// for each second, as the two sides may be of different length, or shares where time is
    /// not known.
    pub fn unit_of_difference(&self) -> Option<Unit> {
        let is_shown = self.knobs.shows_difference && self.open.has(Feature::Compares);
        let diff = self.shown.comparison.functions.as_deref();
        let has_time = diff.filter(|_| is_shown)?.sides().have_time();
        Some(if has_time { Unit::CpuMs } else { Unit::Share })
    }

    /// Whether samples can be turned into time.
    pub fn has_time(&self) -> bool {
        self.per_second() > 0 && self.shown.report.window.seconds() > 0.0
    }

    /// How much of what is counted makes a second of a CPU, or of a thread that waits; 0 if
    /// that is not known.
    pub fn per_second(&self) -> u32 {
        let view = self.shown.view.as_ref();
        match view.map(|view| view.info().metric.per_second()) {
            Some(ns @ 1..) => ns,
            _ => self.shown.report.rate_hz,
        }
    }

    /// The unit as it is written behind numbers. Where time waited is counted, what would be
    /// CPUs are threads that waited, on average at a time.
    pub fn unit_words(&self) -> &'static str {
        match self.unit() {
            Unit::Cpus if self.counts_time() => "threads",
            Unit::CpuMs if self.counts_time() => "ms/s",
            unit => unit.words(),
        }
    }

    /// The head of a column of CPUs, or of threads that waited.
    pub fn cpus_head(&self) -> &'static str {
        let metric = self.shown.view.as_ref().map(|view| &view.info().metric);
        match metric {
            _ if !self.counts_time() => "CPUS",
            Some(metric) if *metric == Metric::off_cpu() => "WAIT",
            Some(metric) if *metric == Metric::wall() => "WALL",
            Some(metric) if *metric == Metric::kept_waiting() => "KEPT",
            _ => "TIME",
        }
    }

    /// Whether what is counted is time, in nanoseconds, and no samples.
    pub fn counts_time(&self) -> bool {
        self.shown.counts_time()
    }

    /// Returns the comparison with the baseline, if it is shown in place of the functions.
    pub fn difference(&self) -> Option<&'a Diff> {
        Self::difference_in(self.shown, self.knobs, self.open)
    }

    /// Does what [`Self::difference`] does, for callers that have no context yet: which
    /// view has the keys depends on it.
    pub fn difference_in(shown: &'a Snapshot, knobs: &Knobs, open: ViewId) -> Option<&'a Diff> {
        let is_shown = open == ViewId::Functions && knobs.shows_difference;
        shown.comparison.functions.as_deref().filter(|_| is_shown)
    }

    /// Returns the scope in words: the last narrowing, or else what is sampled.
    pub fn scope_words(&self) -> Arc<str> {
        match (self.knobs.scope.last(), &*self.shown.run.scope) {
            (Some(narrowed), _) => Arc::clone(&narrowed.words),
            (None, "") => Run::WHOLE_MACHINE.into(),
            (None, _) => Arc::clone(&self.shown.run.scope),
        }
    }

    /// Returns the words for the root of a call tree.
    pub fn root_words(&self) -> Arc<str> {
        let is_untold = self.knobs.scope.is_empty() && self.shown.run.scope.is_empty();
        if is_untold {
            "all".into()
        } else {
            self.scope_words()
        }
    }

    /// The key that does an action where the keys go, as it is written on the
    /// screen; `None` if no key does.
    pub fn key(&self, action: Action) -> Option<String> {
        self.keymap.label(action, self.focus)
    }
}

/// How many cells the line about the selected row has.
#[derive(Debug, Clone, Copy)]
pub struct DetailRoom {
    pub line: usize,
    /// The width of the view: if a name was cut there, the line has it in full.
    pub view: u16,
}
