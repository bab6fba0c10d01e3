//! What views ask for beyond the snapshot. An answer comes a moment after the
//! snapshot that it is of, and is shown when no hand is at the keys.

use super::{App, Effect};
use crate::screen::View;
use crate::screen::beside::Beside;
use crate::screen::question::{Answer, Question};
use std::sync::Arc;

impl App {
    /// What the open view needs to follow the shown snapshot.
    pub(super) fn ask(&mut self) -> Option<Effect> {
        let question = match self.view {
            View::Tree => Question::Tree(self.views.tree.question(&self.shown)?),
            View::Flame => Question::Flame(self.views.flame.question(&self.shown)?),
            View::Page => Question::Page(self.views.page.question(&self.shown)?),
            View::Time => Question::Time(self.views.time.question(&self.shown)?),
            View::Code => Question::Code(self.views.code.question(&self.shown)?),
            View::Functions if self.pane() == Some(Beside::Page) => {
                Question::Page(self.views.beside.question(&self.shown)?)
            }
            View::Functions | View::Processes | View::Threads | View::Health => return None,
        };
        Some(Effect::Ask(question))
    }

    pub(super) fn hear(&mut self, answer: Answer) {
        let is_calm = self.frozen.is_none() && self.calm.may_sort(self.now);
        let is_shown = match answer {
            Answer::Report(answer) => return self.receive_report(&answer),
            Answer::Tree(answer) => self.views.tree.receive(answer, is_calm),
            Answer::Flame(answer) => self.views.flame.receive(answer, is_calm),
            // Each takes what it has asked for.
            Answer::Page(answer) => {
                self.views.page.receive(Arc::clone(&answer), is_calm)
                    | self.views.beside.receive(answer, is_calm)
            }
            Answer::Time(answer) => self.views.time.receive(answer, is_calm),
            Answer::Code(answer) => self.views.code.receive(answer, is_calm),
        };
        if is_shown {
            self.calm.sorted(self.now);
        }
    }

    /// Shows the answer that came at a busy moment.
    pub(super) fn take_waiting(&mut self) {
        let is_calm = self.frozen.is_none() && self.calm.may_sort(self.now);
        let is_shown = is_calm
            && match self.view {
                View::Tree => self.views.tree.take_waiting(),
                View::Flame => self.views.flame.take_waiting(),
                View::Page => self.views.page.take_waiting(),
                View::Time => self.views.time.take_waiting(),
                View::Code => self.views.code.take_waiting(),
                View::Functions => self.views.beside.take_waiting(),
                View::Processes | View::Threads | View::Health => false,
            };
        if is_shown {
            self.calm.sorted(self.now);
        }
    }

    /// The open view is about to be left.
    pub(super) fn release(&mut self) {
        match self.view {
            View::Tree => self.views.tree.release(),
            View::Flame => self.views.flame.release(),
            View::Page => self.views.page.release(),
            View::Time => self.views.time.release(),
            View::Code => self.views.code.release(),
            View::Functions => self.views.beside.release(),
            View::Processes | View::Threads | View::Health => {}
        }
    }
}
