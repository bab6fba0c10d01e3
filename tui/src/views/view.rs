//! What the app needs of a view, whatever it shows.

use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::Part;
use crate::knobs::Narrowing;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::words::fit::Segment;
use profile::FunctionId;
use std::any::Any;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// A view as the app sees it. What a view does not have, it leaves out: then the
/// order does nothing there.
pub trait View: Debug {
    /// Brings the rows up to the snapshot that is shown. They may change places only
    /// if `sort` is set. Returns whether the rows come from the snapshot; views that
    /// ask the profile for theirs return false, and follow with the answer.
    fn update(&mut self, _cx: &Context<'_>, _sort: bool) -> bool {
        false
    }

    fn resize(&mut self, cx: &Context<'_>, part: &Part);

    fn go(&mut self, cx: &Context<'_>, motion: Motion);

    /// Selects what is drawn in a cell of the body.
    fn select_at(&mut self, cx: &Context<'_>, column: u16, line: usize);

    /// What is looked for and how much of it was found; `None` if nothing is.
    fn found(&self, _cx: &Context<'_>) -> Option<Found<'_>> {
        None
    }

    fn set_find(&mut self, _cx: &Context<'_>, _find: Option<Find>) {}

    /// Selects the next match. Returns which of the matches it is, from 1.
    fn select_found(&mut self, _cx: &Context<'_>, _down: bool, _including: bool) -> Option<usize> {
        None
    }

    /// Opens what hides a function, and selects it. Returns false if the view hides
    /// none.
    fn reveal(&mut self, _function: FunctionId) -> bool {
        false
    }

    /// The text of what is selected, to be copied.
    fn selected_name(&self, _cx: &Context<'_>) -> Option<String> {
        None
    }

    /// The function that what is selected is about.
    fn selected_function(&self, _cx: &Context<'_>) -> Option<FunctionHere> {
        None
    }

    /// The function whose code is opened from here.
    fn function_for_code(&self, cx: &Context<'_>) -> Option<FunctionId> {
        self.selected_function(cx)?.id
    }

    /// The function that was selected on purpose, to be selected in the view that is
    /// opened next. The outer `None`: functions are not selected here.
    fn held_function(&self, _cx: &Context<'_>) -> Option<Option<FunctionId>> {
        None
    }

    /// Selects the function that was selected in the view before, if one was.
    fn follow_function(&mut self, _cx: &Context<'_>, _function: Option<FunctionId>) {}

    /// The name of the one function that all of the view is about.
    fn about(&self) -> Option<Arc<str>> {
        None
    }

    /// What the header says about how far the numbers can be trusted, where that is
    /// another thing than for all samples.
    fn trust(&self) -> Option<Vec<Segment>> {
        None
    }

    /// How many samples its numbers are shares of, where they are not of the report that
    /// came last.
    fn counted(&self) -> Option<u64> {
        None
    }

    fn sort(&mut self, _cx: &Context<'_>, _order: Sort) {}

    /// What has to be asked of the profile now.
    fn question(&mut self, _cx: &Context<'_>) -> Option<Question> {
        None
    }

    /// Takes the answer to its own question, and shows it if it is calm. Returns
    /// whether it is shown.
    fn receive(&mut self, _answer: &Answer, _is_calm: bool) -> bool {
        false
    }

    /// Shows the answer that came at a busy moment. Returns whether there was one.
    fn take_waiting(&mut self) -> bool {
        false
    }

    /// Gives back what it holds for the screen: it is no longer looked at.
    fn release(&mut self) {}

    /// All that is needed to come back to what is looked at now.
    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Goes back to a place of its own.
    fn return_to(&mut self, _place: &dyn Any) {}

    /// Closes what was opened last inside the view. `before` is its place at the last
    /// step that there is to go back to: what was done before that is left to the
    /// history. Returns false if there is nothing to close.
    fn close_innermost(&mut self, _before: Option<&dyn Any>) -> bool {
        false
    }

    /// Marks the selected row, or takes its mark away.
    fn toggle_mark(&mut self, _cx: &Context<'_>) {}

    fn unmark(&mut self) {}

    fn marked(&self) -> usize {
        0
    }

    /// What the scope is narrowed to from here.
    fn narrowing(&self, _cx: &Context<'_>) -> Option<Narrowing> {
        None
    }

    /// Whether an action changes so much that one wants to come back.
    fn is_a_step(&self, _action: Action) -> bool {
        false
    }

    /// Whether an action does something with what is selected; else the key line leaves it
    /// out.
    fn offers(&self, _cx: &Context<'_>, _action: Action) -> bool {
        true
    }

    /// Does an action that means something to this view only.
    fn act(&mut self, _cx: &Context<'_>, _action: Action) -> Done {
        Done::Nothing
    }

    /// One sentence on the selected row's number.
    fn explain(&self, cx: &Context<'_>) -> Option<String>;
}

/// A function that is selected.
#[derive(Debug, Clone)]
pub struct FunctionHere {
    /// `None` if it has no samples any more.
    pub id: Option<FunctionId>,
    /// Name and module, if it is a real function and not the end of a stack or a sum.
    pub named: Option<(Arc<str>, Arc<str>)>,
}

/// What became of an action in a view.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// It means nothing here.
    Nothing,
    Here,
    Said(Notice),
    OpenPage(FunctionId),
    OpenCode(FunctionId),
    /// The code of the function of that name in a module.
    OpenCodeNamed {
        name: Arc<str>,
        module: Option<Arc<str>>,
    },
    /// A stretch of time becomes the window.
    UseTime {
        start_ns: u64,
        end_ns: u64,
    },
    Copy(String),
    Edit(PathBuf, u32),
}
