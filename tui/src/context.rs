//! The *context*: what a view is drawn, asked and described in. It holds what all
//! views share; what belongs to one view is in that view's own state.

use crate::action::{Action, Keymap};
use crate::knobs::{Knobs, Unit};
use crate::view_id::ViewId;
use engine::snapshot::Snapshot;
use profile::diff::Diff;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What is drawn: one snapshot for every view of a frame.
    pub shown: &'a Snapshot,
    pub knobs: &'a Knobs,
    pub keymap: &'a Keymap,
    /// The view that is open; what stands beside it may be another one.
    pub open: ViewId,
    /// The view that the keys go to.
    pub focus: ViewId,
    /// Whether this is what stands beside the open view.
    pub is_beside: bool,
    /// Whether the keys go to what is drawn.
    pub has_keys: bool,
    /// proftop's own process, which is marked among the others.
    pub own_pid: u32,
}

impl<'a> Context<'a> {
    /// The unit that the open view counts in, and what stands beside it as well.
    pub fn unit(&self) -> Unit {
        let usual = Unit::usual(self.open);
        let asked = self.knobs.unit.unwrap_or(usual);
        if asked.needs_time() && self.shown.report.samples > 0 && !self.has_time() {
            usual
        } else {
            asked
        }
    }

    /// Whether samples can be turned into time.
    pub fn has_time(&self) -> bool {
        let report = &self.shown.report;
        report.rate_hz > 0 && report.window.seconds() > 0.0
    }

    /// What differs from the baseline, where the list of functions shows that.
    pub fn difference(&self) -> Option<&'a Diff> {
        Self::difference_in(self.shown, self.knobs, self.open)
    }

    /// The same, before it is known where the keys go: that depends on it.
    pub fn difference_in(shown: &'a Snapshot, knobs: &Knobs, open: ViewId) -> Option<&'a Diff> {
        let is_shown = open == ViewId::Functions && knobs.shows_difference;
        shown.comparison.functions.as_deref().filter(|_| is_shown)
    }

    /// The scope that is looked at: the last narrowing, else what is sampled.
    pub fn scope_words(&self) -> Arc<str> {
        match (self.knobs.scope.last(), &*self.shown.run.scope) {
            (Some(narrowed), _) => Arc::clone(&narrowed.words),
            (None, "") => "system".into(),
            (None, _) => Arc::clone(&self.shown.run.scope),
        }
    }

    /// The root of a tree of what is looked at.
    pub fn root_words(&self) -> Arc<str> {
        let is_untold = self.knobs.scope.is_empty() && self.shown.run.scope.is_empty();
        match is_untold {
            true => "all".into(),
            false => self.scope_words(),
        }
    }

    /// What stands in place of a number where there are no samples any more: with a filter
    /// that need not be so without it.
    pub fn absent(&self) -> &'static str {
        match self.knobs.filter.is_empty() {
            true => "gone",
            false => "hidden",
        }
    }

    /// The key that does an action where the keys go, as it is written on the
    /// screen; `None` if no key does.
    pub fn key(&self, action: Action) -> Option<String> {
        self.keymap.label(action, self.focus)
    }
}

/// How much room the line on the selected row has, in cells.
#[derive(Debug, Clone, Copy)]
pub struct DetailRoom {
    pub line: usize,
    /// The view's: a name that is cut there is told in full.
    pub view: u16,
}
