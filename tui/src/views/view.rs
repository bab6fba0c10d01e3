//! What the app needs of a view, whatever it shows.

use crate::action::Action;
use crate::context::Context;
use crate::desk::{Answer, Question};
use crate::geometry::ViewArea;
use crate::knobs::Narrowing;
use crate::lists::find::{Find, Found};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::Notice;
use crate::words::fit::Segment;
use profile::FunctionId;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

/// A view as the app sees it. A view that has no use for a method leaves it out: its default
/// does nothing, and returns false, 0 or None.
pub trait View {
    /// Updates the rows from the snapshot that is shown. Rows may change places only if `sort`
    /// is true. Returns true if the rows come from the snapshot; a view that asks the profile
    /// for its rows returns false, and updates them when the answer comes.
    fn update(&mut self, _cx: &Context<'_>, _sort: bool) -> bool {
        false
    }

    /// Tells the view the size of its part of the screen, before it is drawn there.
    fn resize(&mut self, cx: &Context<'_>, part: &ViewArea);

    /// Moves the selection.
    fn go(&mut self, cx: &Context<'_>, motion: Motion);

    /// Selects what is drawn in a cell of the body; `column` and `line` count from 0 at its top
    /// left corner.
    fn select_at(&mut self, cx: &Context<'_>, column: u16, line: usize);

    /// The pattern that is searched for, and how many rows match it; None if there is no
    /// search.
    fn found(&self, _cx: &Context<'_>) -> Option<Found<'_>> {
        None
    }

    /// Starts a search for a pattern, or ends the search with None.
    fn set_find(&mut self, _cx: &Context<'_>, _find: Option<Find>) {}

    /// Selects the next match below the selected row, or above it if `down` is false. With
    /// `including`, on the way down, the selected row itself may be the match. Returns which of
    /// the matches it is, from 1; None if there is none.
    fn select_found(&mut self, _cx: &Context<'_>, _down: bool, _including: bool) -> Option<usize> {
        None
    }

    /// Selects a function even if it is in rows that are closed or not drawn. Returns false in
    /// views that have no such rows; then nothing was done.
    fn reveal(&mut self, _function: FunctionId) -> bool {
        false
    }

    /// The text of the selected row, to be copied to the clipboard.
    fn selected_name(&self, _cx: &Context<'_>) -> Option<String> {
        None
    }

    /// The function that the selected row is about.
    fn selected_function(&self, _cx: &Context<'_>) -> Option<FunctionHere> {
        None
    }

    /// The function whose code is opened from here.
    fn function_for_code(&self, cx: &Context<'_>) -> Option<FunctionId> {
        self.selected_function(cx)?.id
    }

    /// The function that the user selected, to be selected in the view that is opened next. The
    /// outer None: functions are not selected in this view. The inner None: the user has
    /// selected none.
    fn held_function(&self, _cx: &Context<'_>) -> Option<Option<FunctionId>> {
        None
    }

    /// Selects the function that was selected in the view before, if one was.
    fn follow_function(&mut self, _cx: &Context<'_>, _function: Option<FunctionId>) {}

    /// The name of the one function that all of the view is about.
    fn about(&self) -> Option<Arc<str>> {
        None
    }

    /// What the header says about how far the numbers of this view can be trusted; None where
    /// it says the same as for all samples.
    fn trust(&self) -> Option<Vec<Segment>> {
        None
    }

    /// How many samples the percentages of this view are shares of; None if these are the
    /// samples of the newest report.
    fn counted(&self) -> Option<u64> {
        None
    }

    /// Changes the order of the rows. Where rows have a direction (trees, flame graphs),
    /// [`Sort::Invert`] swaps callers and callees instead.
    fn sort(&mut self, _cx: &Context<'_>, _order: Sort) {}

    /// The question that has to be asked of the profile now; None if there is none, or it is
    /// asked or answered already.
    fn question(&mut self, _cx: &Context<'_>) -> Option<Question> {
        None
    }

    /// Whether it has asked and there are no rows before the answer.
    fn awaits_rows(&self) -> bool {
        false
    }

    /// Takes an answer, if it is the one to this view's question. `is_calm` is true if rows may
    /// move now: no key was pressed a moment ago, or the screen is frozen, which then gets the
    /// last answer about what it shows. Else the answer may be kept for [`View::take_waiting`]. Returns whether it is shown.
    fn receive(&mut self, _answer: &Answer, _is_calm: bool) -> bool {
        false
    }

    /// Shows the answer that [`View::receive`] kept. Returns whether there was one.
    fn take_waiting(&mut self) -> bool {
        false
    }

    /// Frees the answers that it holds, because the view is no longer on the screen.
    fn release(&mut self) {}

    /// Forgets what the selected row was when it was last seen, because another part of the
    /// samples is counted now: a row of the part before is not kept among the new ones.
    fn forget_last_seen(&mut self) {}

    /// All that is needed to come back to what is looked at now.
    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Goes back to a place that [`View::place`] of the same view returned.
    fn return_to(&mut self, _place: &dyn Any) {}

    /// Closes what was opened last inside the view, a zoom for example. `before` is the view's
    /// place in the newest entry of the history: what was opened before that is closed by going
    /// back there, not here. Returns false if there is nothing to close.
    fn close_innermost(&mut self, _before: Option<&dyn Any>) -> bool {
        false
    }

    /// Marks the selected row, or takes its mark away.
    fn toggle_mark(&mut self, _cx: &Context<'_>) {}

    /// Takes the marks of all rows away.
    fn unmark(&mut self) {}

    /// How many rows are marked.
    fn marked(&self) -> usize {
        0
    }

    /// What the scope can be narrowed to from here, such as the marked or selected processes.
    fn narrowing(&self, _cx: &Context<'_>) -> Option<Narrowing> {
        None
    }

    /// Whether an action changes so much that the state before it is put into the history.
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

    /// Explains the selected row's number in one sentence; None if no row is selected.
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
    /// The action means nothing in this view.
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
