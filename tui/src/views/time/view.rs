//! The map of time as the app sees it: its implementation of [`View`].

use super::{Time, TimeAnswer, words};
use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::lists::motion::Motion;
use crate::views::{Done, View};
use profile::FunctionId;
use std::any::Any;

impl View for Time {
    fn resize(&mut self, cx: &Context<'_>, part: &ViewArea) {
        self.resize(part.width, part.height.into(), cx.shown.source.rate_hz);
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, column: u16, line: usize) {
        self.select_cell(column, line);
    }

    fn follow_function(&mut self, _: &Context<'_>, function: Option<FunctionId>) {
        self.follow(function);
    }

    fn question(&mut self, cx: &Context<'_>) -> Option<Question> {
        self.question(cx.shown).map(Question::new)
    }

    fn awaits_rows(&self) -> bool {
        self.desk.awaits_first()
    }

    fn receive(&mut self, answer: &Answer, is_calm: bool) -> bool {
        let answer = answer.of::<TimeAnswer>();
        answer.is_some_and(|answer| self.receive(answer, is_calm))
    }

    fn take_waiting(&mut self) -> bool {
        self.take_waiting()
    }

    fn release(&mut self) {
        self.release();
    }

    fn close_innermost(&mut self, _: Option<&dyn Any>) -> bool {
        self.end_mark()
    }

    fn act(&mut self, _: &Context<'_>, action: Action) -> Done {
        match action {
            Action::Group => self.next_rows(),
            Action::Left => self.go_sideways(false),
            Action::Right => self.go_sideways(true),
            Action::MarkTime => self.set_mark(),
            Action::UseTime => {
                if let Some((start_ns, end_ns)) = self.stretch() {
                    self.use_up();
                    return Done::UseTime { start_ns, end_ns };
                }
            }
            _ => return Done::Nothing,
        }
        Done::Here
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        words::explain(self, cx)
    }
}
