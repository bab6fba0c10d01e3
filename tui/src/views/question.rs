//! Every question that there is, and its answer.

use crate::app::report::{ReportAnswer, ReportQuestion};
use crate::code::Library;
use crate::desk::Ask;
use crate::views::code::{CodeAnswer, CodeWanted};
use crate::views::page::PageAnswer;
use crate::views::seconds::SecondsAnswer;
use crate::views::time::{TimeAnswer, TimeWanted};
use crate::views::tree::{TreeAnswer, TreeQuestion};
use profile::{Cancel, FunctionId};
use std::sync::Arc;

/// One of any view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// What the knobs ask for.
    Report(ReportQuestion),
    Tree(TreeQuestion),
    Flame(TreeQuestion),
    Page(Ask<FunctionId>),
    Seconds(Ask<()>),
    Time(Ask<TimeWanted>),
    Code(Ask<CodeWanted>),
}

/// What was found, with the key that it was asked by.
#[derive(Debug, Clone)]
pub enum Answer {
    Report(Arc<ReportAnswer>),
    Tree(Arc<TreeAnswer>),
    Flame(Arc<TreeAnswer>),
    Page(Arc<PageAnswer>),
    Seconds(Arc<SecondsAnswer>),
    Time(Arc<TimeAnswer>),
    Code(Arc<CodeAnswer>),
}

impl Question {
    /// Nothing if it was cancelled. Code comes from the library.
    pub fn answer(self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(match self {
            Question::Report(question) => Answer::Report(Arc::new(question.answer(cancel)?)),
            Question::Tree(ask) => Answer::Tree(Arc::new(ask.answer(cancel)?)),
            Question::Flame(ask) => Answer::Flame(Arc::new(ask.answer(cancel)?)),
            Question::Page(ask) => Answer::Page(Arc::new(PageAnswer::new(ask, cancel)?)),
            Question::Seconds(ask) => Answer::Seconds(Arc::new(SecondsAnswer::new(ask, cancel)?)),
            Question::Time(ask) => Answer::Time(Arc::new(TimeAnswer::new(ask, cancel)?)),
            Question::Code(ask) => Answer::Code(Arc::new(CodeAnswer::new(ask, library, cancel)?)),
        })
    }
}
