//! What views ask for beyond the snapshot. An answer comes a moment after the
//! snapshot that it is of, and is shown when no hand is at the keys.

use super::{App, Effect};
use crate::app::parts::Strip;
use crate::desk::{Answer, Question};
use crate::view_id::ViewId;
use crate::views::PaneId;
use crate::views::report::ReportAnswer;
use crate::views::seconds::SecondsAnswer;

impl App {
    /// What the open view, and what stands beside it, need to follow the shown
    /// snapshot.
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
        // The functions ask nothing for themselves.
        let of_pane = of_pane.map(match self.view {
            ViewId::Functions => Effect::Ask,
            _ => Effect::AskBeside,
        });
        let of_strip = of_strip.map(Effect::AskBeside);
        let asked = [of_view.map(Effect::Ask), of_pane, of_strip];
        asked.into_iter().flatten().collect()
    }

    pub(super) fn receive_answer(&mut self, answer: Answer) {
        let is_calm = self.freezing.frozen.is_none() && self.calm.may_sort(self.now);
        if let Some(answer) = answer.of::<ReportAnswer>() {
            return self.receive_report(&answer);
        }
        if let Some(answer) = answer.of::<SecondsAnswer>() {
            return self.seconds.receive(answer);
        }
        // Each takes what it has asked for.
        let mut is_shown = false;
        for pane in PaneId::ALL {
            is_shown |= self.views.get_mut(*pane).receive(&answer, is_calm);
        }
        if is_shown {
            self.calm.sorted(self.now);
        }
    }

    /// Shows the answer that came at a busy moment.
    pub(super) fn take_waiting(&mut self) {
        let is_calm = self.freezing.frozen.is_none() && self.calm.may_sort(self.now);
        if !is_calm {
            return;
        }
        let mut is_shown = false;
        for pane in self.panes() {
            is_shown |= self.views.get_mut(pane).take_waiting();
        }
        if is_shown {
            self.calm.sorted(self.now);
        }
    }

    /// The open view is about to be left.
    pub(super) fn release(&mut self) {
        self.views.get_mut(PaneId::of(self.view)).release();
    }
}
