//! Decides which report is shown: the engine's, or one that the profile is asked for.

use super::{App, Effect};
use crate::desk::Question;
use crate::desk::report::{ReportAnswer, ReportKey, ReportQuestion};
use crate::knobs::Window;
use engine::snapshot::{Span, TargetState};
use std::sync::Arc;

/// Which questions were sent to the engine and to the profile.
#[derive(Debug)]
pub(super) struct Asking {
    /// Number of changes of the knobs that altered which samples count. It distinguishes answers
    /// for the present knobs from answers for earlier ones.
    pub(super) turns: u64,
    /// Number of baselines that the user has made.
    pub(super) baselines: u64,
    own_reports: OwnReports,
    /// The window that the engine was last asked to report.
    engine_window: Span,
    /// The metric that is shown as soon as waits are recorded. `None` if they were not asked for,
    /// or are already recorded.
    pub(super) waits: Option<String>,
}

impl Asking {
    /// Creates the state, with the window that the engine reports at first.
    pub(super) fn new(engine_window: Span) -> Self {
        Asking {
            turns: 0,
            baselines: 0,
            own_reports: OwnReports::default(),
            engine_window,
            waits: None,
        }
    }
}

/// Reports that we ask the profile for because the engine does not make them, for example with a
/// filter.
#[derive(Debug, Default)]
struct OwnReports {
    /// The report that is being made.
    asked: Option<ReportKey>,
    /// The report that was received last.
    answered: Option<ReportKey>,
}

impl App {
    /// Whether the engine's own reports answer the present knobs, now or with one of the next
    /// snapshots.
    pub(super) fn is_the_engines(&self) -> bool {
        let asks_all = self.knobs.scope.is_empty()
            && self.knobs.filter.is_empty()
            && self.knobs.metric == 0
            && self.knobs.difference().is_none();
        let is_coming = self.feed.freezing.frozen.is_none()
            && self.feed.base.source.recording.is_none()
            && matches!(
                self.feed.base.run.target,
                TargetState::Starting | TargetState::Running
            );
        match self.knobs.window {
            Window::Last(span) => asks_all && (span == self.feed.base.asked.window || is_coming),
            Window::Since { .. } | Window::Between { .. } => false,
        }
    }

    /// Whether the shown report does not answer the present knobs yet.
    pub fn is_catching_up(&self) -> bool {
        if self.is_the_engines() {
            self.feed.base.generation > 0
                && self.knobs.window != Window::Last(self.feed.base.asked.window)
        } else {
            self.shown.asked.turn != self.feed.asking.turns && self.feed.base.view.is_some()
        }
    }

    /// Returns the effects that ask the engine for another window, or the profile for a report.
    pub(super) fn ask_for_report(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Window::Last(span) = self.knobs.window
            && span != self.feed.asking.engine_window
        {
            self.feed.asking.engine_window = span;
            if self.feed.base.source.recording.is_none() {
                effects.push(Effect::SetWindow(span));
            }
        }
        if self.is_the_engines() {
            self.feed.asking.own_reports = OwnReports::default();
            return effects;
        }
        let key = ReportKey {
            turn: self.feed.asking.turns,
            generation: self.feed.base.generation,
        };
        // A report that is being made for an older snapshot is not cancelled in favor of a newer
        // one: if reports are slow, none would ever be finished.
        let is_under_way = self
            .feed
            .asking
            .own_reports
            .asked
            .is_some_and(|asked| asked.turn == key.turn);
        if is_under_way || self.feed.asking.own_reports.answered == Some(key) {
            return effects;
        }
        if let Some(question) =
            ReportQuestion::new(&self.feed.base, &self.knobs, self.feed.asking.turns)
        {
            self.feed.asking.own_reports.asked = Some(key);
            effects.push(Effect::Ask(Question::new(question)));
        }
        effects
    }

    /// Records that the question was cancelled, so that it is asked again.
    pub(crate) fn give_up_report(&mut self) {
        self.feed.asking.own_reports.asked = None;
    }

    /// Shows a report that the profile was asked for. Only the report asked for last is shown,
    /// others are dropped.
    pub(super) fn receive_report(&mut self, answer: &ReportAnswer) {
        if self.feed.asking.own_reports.asked != Some(answer.key) {
            return;
        }
        self.feed.asking.own_reports.asked = None;
        self.feed.asking.own_reports.answered = Some(answer.key);
        // The first answer after a change of the knobs is shown and sorted at once.
        let is_awaited = self.shown.asked.turn != answer.key.turn;
        if !is_awaited && self.difference().is_some() && !self.input.calm.may_sort(self.now) {
            // Its rows would change places; the next report comes in a second.
            return;
        }
        self.show(Arc::clone(&answer.snapshot), is_awaited);
    }
}
