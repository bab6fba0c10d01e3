//! Health as the app sees it: its implementation of [`View`].

use super::{CauseAnswer, Health};
use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::motion::Motion;
use crate::notice::Notice;
use crate::views::{Done, View};
use std::any::Any;

impl View for Health {
    fn update(&mut self, cx: &Context<'_>, _: bool) -> bool {
        self.update(cx.shown);
        true
    }

    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    fn question(&mut self, cx: &Context<'_>) -> Option<Question> {
        self.question(cx.shown).map(Question::new)
    }

    fn receive(&mut self, answer: &Answer, is_calm: bool) -> bool {
        let answer = answer.of::<CauseAnswer>();
        answer.is_some_and(|answer| self.receive(answer, is_calm))
    }

    fn take_waiting(&mut self) -> bool {
        self.take_waiting()
    }

    fn release(&mut self) {
        self.release();
    }

    fn close_innermost(&mut self, _: Option<&dyn Any>) -> bool {
        self.close_cause()
    }

    fn act(&mut self, cx: &Context<'_>, action: Action) -> Done {
        match action {
            Action::OpenCause if self.toggle_cause(cx.shown) => Done::Here,
            Action::OpenCause => Done::Said(Notice::NoCause),
            _ => Done::Nothing,
        }
    }

    fn selected_name(&self, _: &Context<'_>) -> Option<String> {
        self.selected_command()
    }

    /// The detail line already explains the selected line.
    fn offers(&self, _: &Context<'_>, action: Action) -> bool {
        action != Action::Explain
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        let finding = self.lines(cx.shown).into_iter().nth(self.index())?;
        Some(finding.explain)
    }
}
