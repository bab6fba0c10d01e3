//! The questions of views, and the answers. An answer comes a moment after the snapshot that it
//! belongs to. It is shown when the user presses no keys, so that rows do not move under the
//! cursor.

use super::{App, Effect};
use crate::app::parts::Strip;
use crate::desk::report::ReportAnswer;
use crate::desk::seconds::SecondsAnswer;
use crate::desk::{Answer, Question};
use crate::view_id::ViewId;
use crate::views::PaneId;

impl App {
    /// Returns the questions that the visible views have about the shown snapshot and have not
    /// asked yet.
    pub(super) fn ask(&mut self) -> Vec<Effect> {
        let parts = self.parts();
        let pane = parts.and_then(|parts| parts.pane).map(|(beside, _)| beside);
        let strip = parts.and_then(|parts| parts.strip).map(|(strip, _)| strip);
        let of_view = self.with(PaneId::of(self.view), |view, cx| view.question(cx));
        let of_pane = pane.and_then(|pane| self.with(pane, |view, cx| view.question(cx)));
        let of_strip = match strip {
            Some(Strip::Seconds) => self.seconds.question(&self.shown).map(Question::new),
            Some(Strip::Cpus) | None => None,
        };
        // The view of functions asks no question itself, so its pane can ask in place of the view.
        let of_pane = of_pane.map(match self.view {
            ViewId::Functions => Effect::Ask,
            _ => Effect::AskBeside,
        });
        let of_strip = of_strip.map(Effect::AskBeside);
        let asked = [of_view.map(Effect::Ask), of_pane, of_strip];
        asked.into_iter().flatten().collect()
    }

    /// Hands an answer to the view that asked for it. Answers that are not needed any more are
    /// dropped.
    pub(super) fn receive_answer(&mut self, answer: Answer) {
        let is_calm = self.may_show_answers();
        if let Some(answer) = answer.of::<ReportAnswer>() {
            return self.receive_report(&answer);
        }
        if let Some(answer) = answer.of::<SecondsAnswer>() {
            return self.seconds.receive(answer);
        }
        // Each view takes only the answer to its own question.
        for pane in PaneId::ALL {
            self.views.get_mut(*pane).receive(&answer, is_calm);
        }
    }

    /// Whether answers are shown as they come: the user presses no key, or the screen is frozen. In
    /// the latter case they are about the frozen snapshot, and after the last one nothing changes
    /// any more.
    fn may_show_answers(&self) -> bool {
        self.feed.freezing.frozen.is_some() || self.input.calm.may_answer(self.now)
    }

    /// Shows answers that came while the user was pressing keys.
    pub(super) fn take_waiting(&mut self) {
        if !self.may_show_answers() {
            return;
        }
        for pane in self.panes() {
            self.views.get_mut(pane).take_waiting();
        }
    }

    /// Lets the open view drop its answers, because another view is about to be opened.
    pub(super) fn release(&mut self) {
        self.views.get_mut(PaneId::of(self.view)).release();
    }
}
