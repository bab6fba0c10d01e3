//! The *context*: the state that all views share, which a view gets to draw itself or to handle an
//! event. The state of a single view is in that view.

use crate::action::{Action, Keymap};
use crate::knobs::{Knobs, Unit};
use crate::view_id::{Feature, ViewId};
use engine::snapshot::{Run, Snapshot};
use profile::Metric;
use profile::diff::Diff;
use std::sync::Arc;

/// The state that all views share. It is made anew for each call.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The snapshot that is drawn: the same one for every view of a frame.
    pub shown: &'a Snapshot,
    pub knobs: &'a Knobs,
    pub keymap: &'a Keymap,
    /// The open view. The view beside it may be another one.
    pub open: ViewId,
    /// The focused view, which gets the keys.
    pub focus: ViewId,
    /// Whether this context is for the view beside the open one.
    pub is_beside: bool,
    /// Whether the view of this context is focused.
    pub has_keys: bool,
    /// Whether rows keep their places for a moment because the user is pressing keys, although
    /// their numbers have changed.
    pub is_order_held: bool,
    /// The pid of proftop itself, which is marked among the processes.
    pub own_pid: Option<u32>,
}

impl<'a> Context<'a> {
    /// Returns the unit of the open view, which the view beside it uses, too. While differences are
    /// shown, it is their unit. It is the usual unit if the chosen one needs a time that is not
    /// known.
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

    /// Returns the unit of a comparison with the baseline, if the open view shows one: time per
    /// second, because the sides may have different lengths, or shares if time is not known.
    pub fn unit_of_difference(&self) -> Option<Unit> {
        let is_shown = self.knobs.shows_difference && self.open.has(Feature::Compares);
        let diff = self.shown.comparison.functions.as_deref();
        let has_time = diff.filter(|_| is_shown)?.sides().have_time();
        Some(if has_time { Unit::CpuMs } else { Unit::Share })
    }

    /// Whether samples can be converted to time.
    pub fn has_time(&self) -> bool {
        self.per_second() > 0 && self.shown.report.window.seconds() > 0.0
    }

    /// Returns the amount that is one second of a CPU, or of a waiting thread. 0 if that is not
    /// known.
    pub fn per_second(&self) -> u32 {
        let view = self.shown.view.as_ref();
        match view.map(|view| view.info().metric.per_second()) {
            Some(ns @ 1..) => ns,
            _ => self.shown.report.rate_hz,
        }
    }

    /// Returns the unit as it is written after numbers. If time waited is counted, the number of
    /// CPUs becomes the mean number of waiting threads.
    pub fn unit_words(&self) -> &'static str {
        match self.unit() {
            Unit::Cpus if self.counts_time() => "threads",
            Unit::CpuMs if self.counts_time() => "ms/s",
            unit => unit.words(),
        }
    }

    /// Returns the head of a column of CPUs, or of threads that waited.
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

    /// Whether amounts are nanoseconds instead of samples.
    pub fn counts_time(&self) -> bool {
        self.shown.counts_time()
    }

    /// Returns the comparison with the baseline, if it is shown in place of the functions.
    pub fn difference(&self) -> Option<&'a Diff> {
        Self::difference_in(self.shown, self.knobs, self.open)
    }

    /// Does the same as [`Self::difference`], for callers that have no context yet, because the
    /// focused view depends on it.
    pub fn difference_in(shown: &'a Snapshot, knobs: &Knobs, open: ViewId) -> Option<&'a Diff> {
        let is_shown = open == ViewId::Functions && knobs.shows_difference;
        shown.comparison.functions.as_deref().filter(|_| is_shown)
    }

    /// Returns the scope in words: the last narrowing, or else the target of the run.
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

    /// Returns the key of an action in the focused view, as it is written on the screen. None if it
    /// has no key.
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
