//! What views ask for beyond the snapshot. An answer comes a moment after the
//! snapshot that it is of, and is shown when no hand is at the keys.

use super::{App, Effect};
use crate::app::parts::{Beside, Strip};
use crate::view_id::ViewId;
use crate::views::question::{Answer, Question};
use std::sync::Arc;

impl App {
    /// What the open view, and what stands beside it, need to follow the shown
    /// snapshot.
    pub(super) fn ask(&mut self) -> Vec<Effect> {
        let parts = self.parts();
        let pane = parts.and_then(|parts| parts.pane).map(|(beside, _)| beside);
        let strip = parts.and_then(|parts| parts.strip).map(|(strip, _)| strip);
        let shown = &self.shown;
        let views = &mut self.views;
        let of_view = match self.view {
            ViewId::Tree => views.tree.question(shown).map(Question::Tree),
            ViewId::Flame => views.flame.question(shown).map(Question::Flame),
            ViewId::Page => views.page.question(shown).map(Question::Page),
            ViewId::Time => views.time.question(shown).map(Question::Time),
            ViewId::Code => views.code.question(shown).map(Question::Code),
            ViewId::Functions | ViewId::Processes | ViewId::Threads | ViewId::Health => None,
        };
        let of_pane = match pane {
            Some(Beside::Page) => views.beside.question(shown).map(Question::Page),
            Some(Beside::Tree) => views.other_tree.question(shown).map(Question::Tree),
            Some(Beside::Stretch) => views.stretch_flame.question(shown).map(Question::Flame),
            Some(Beside::Difference) => views.difference_flame.question(shown).map(Question::Flame),
            // The instructions came with the source text.
            Some(Beside::Threads | Beside::Assembly) | None => None,
        };
        let of_strip = match strip {
            Some(Strip::Seconds) => views.seconds.question(shown).map(Question::Seconds),
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

    pub(super) fn hear(&mut self, answer: Answer) {
        let is_calm = self.frozen.is_none() && self.calm.may_sort(self.now);
        let is_shown = match answer {
            Answer::Report(answer) => return self.receive_report(&answer),
            // Each takes what it has asked for.
            Answer::Tree(answer) => {
                self.views.tree.receive(Arc::clone(&answer), is_calm)
                    | self.views.other_tree.receive(answer, is_calm)
            }
            Answer::Flame(answer) => {
                self.views.flame.receive(Arc::clone(&answer), is_calm)
                    | self
                        .views
                        .stretch_flame
                        .receive(Arc::clone(&answer), is_calm)
                    | self.views.difference_flame.receive(answer, is_calm)
            }
            Answer::Page(answer) => {
                self.views.page.receive(Arc::clone(&answer), is_calm)
                    | self.views.beside.receive(answer, is_calm)
            }
            Answer::Seconds(answer) => return self.views.seconds.receive(answer),
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
        let views = &mut self.views;
        let is_shown = is_calm
            && match self.view {
                ViewId::Tree => views.tree.take_waiting() | views.other_tree.take_waiting(),
                ViewId::Flame => views.flame.take_waiting(),
                ViewId::Page => views.page.take_waiting(),
                ViewId::Time => views.time.take_waiting() | views.stretch_flame.take_waiting(),
                ViewId::Code => views.code.take_waiting(),
                ViewId::Functions => {
                    views.beside.take_waiting() | views.difference_flame.take_waiting()
                }
                ViewId::Processes | ViewId::Threads | ViewId::Health => false,
            };
        if is_shown {
            self.calm.sorted(self.now);
        }
    }

    /// The open view is about to be left.
    pub(super) fn release(&mut self) {
        match self.view {
            ViewId::Tree => self.views.tree.release(),
            ViewId::Flame => self.views.flame.release(),
            ViewId::Page => self.views.page.release(),
            ViewId::Time => self.views.time.release(),
            ViewId::Code => self.views.code.release(),
            // What stands beside a view goes as soon as it is not seen.
            ViewId::Functions | ViewId::Processes | ViewId::Threads | ViewId::Health => {}
        }
    }
}
