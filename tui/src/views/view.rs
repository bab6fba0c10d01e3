//! What the app needs of a view, independent of what the view shows.

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

/// A view as the app sees it. A view leaves out the methods that it does not need: the default
/// implementations do nothing, and return false, 0 or `None`.
pub trait View {
    /// Updates the rows from the snapshot that is shown. Rows may change places only if `sort`
    /// is true. Returns true if the rows come from the snapshot; a view that asks the profile
    /// for its rows returns false, and updates them when the answer comes.
    fn update(&mut self, _cx: &Context<'_>, _sort: bool) -> bool {
        false
    }

    /// Sets the size of the view's part of the screen, before it is drawn there.
    fn resize(&mut self, cx: &Context<'_>, part: &ViewArea);

    /// Moves the selection.
    fn go(&mut self, cx: &Context<'_>, motion: Motion);

    /// Selects what is drawn in a cell of the body. `column` and `line` are counted from 0 at its
    /// top left corner.
    fn select_at(&mut self, cx: &Context<'_>, column: u16, line: usize);

    /// Returns the pattern of the search and how many rows match it, or `None` if there is no
    /// search.
    fn found(&self, _cx: &Context<'_>) -> Option<Found<'_>> {
        None
    }

    /// Starts a search for a pattern, or ends it with `None`.
    fn set_find(&mut self, _cx: &Context<'_>, _find: Option<Find>) {}

    /// Selects the next match below the selected row, or above it if `down` is false. With
    /// `including` and `down`, the selected row itself may be the match. Returns the position of
    /// the match among all matches, counted from 1, or `None` if there is none.
    fn select_found(&mut self, _cx: &Context<'_>, _down: bool, _including: bool) -> Option<usize> {
        None
    }

    /// Selects a function even if its row is inside a closed one or not built yet. Returns false,
    /// and does nothing, in views without such rows.
    fn reveal(&mut self, _function: FunctionId) -> bool {
        false
    }

    /// Returns the text of the selected row, to be copied to the clipboard.
    fn selected_name(&self, _cx: &Context<'_>) -> Option<String> {
        None
    }

    /// Returns the function that the selected row is about.
    fn selected_function(&self, _cx: &Context<'_>) -> Option<FunctionHere> {
        None
    }

    /// Returns the function whose code is opened from here.
    fn function_for_code(&self, cx: &Context<'_>) -> Option<FunctionId> {
        self.selected_function(cx)?.id
    }

    /// Returns the function that the user selected, which the next view selects as well. The outer
    /// `None` means that no functions can be selected in this view, the inner `None` that the user
    /// has selected none.
    fn held_function(&self, _cx: &Context<'_>) -> Option<Option<FunctionId>> {
        None
    }

    /// Selects the function that was selected in the view before, if any.
    fn follow_function(&mut self, _cx: &Context<'_>, _function: Option<FunctionId>) {}

    /// Returns the name of the function that the whole view is about, if there is one.
    fn about(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns what the header says about how reliable the numbers of this view are, or `None` if
    /// it says the same as for all samples.
    fn trust(&self) -> Option<Vec<Segment>> {
        None
    }

    /// Returns how many samples the percentages of this view are shares of, or `None` if these are
    /// the samples of the newest report.
    fn counted(&self) -> Option<u64> {
        None
    }

    /// Changes the order of the rows. In trees and flame graphs, [`Sort::Invert`] swaps callers and
    /// callees instead.
    fn sort(&mut self, _cx: &Context<'_>, _order: Sort) {}

    /// Returns the question that has to be put to the profile now. Returns `None` if there is none,
    /// or if it was asked already.
    fn question(&mut self, _cx: &Context<'_>) -> Option<Question> {
        None
    }

    /// Whether the view has no rows because the answer to its first question has not come yet.
    fn awaits_rows(&self) -> bool {
        false
    }

    /// Takes an answer if it belongs to this view's question, and returns whether it is shown now.
    /// `is_calm` is true if rows may move: no key was pressed recently, or the screen is frozen and
    /// gets the last answer about what it shows. Otherwise the view may keep the answer for
    /// [`View::take_waiting`].
    fn receive(&mut self, _answer: &Answer, _is_calm: bool) -> bool {
        false
    }

    /// Shows the answer that [`View::receive`] kept. Returns whether there was one.
    fn take_waiting(&mut self) -> bool {
        false
    }

    /// Frees the answers of the view because it is not on the screen any more.
    fn release(&mut self) {}

    /// Forgets the stored copy of the selected row, because another part of the samples is counted
    /// now. If the row is not among the new ones, it is not shown any more.
    fn forget_last_seen(&mut self) {}

    /// Returns everything that is needed to come back to the present position.
    fn place(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Goes back to a position that [`View::place`] of the same view returned.
    fn return_to(&mut self, _place: &dyn Any) {}

    /// Closes what was last opened inside the view, such as a zoom. `before` is the view's position
    /// in the newest entry of the history. What was opened before that entry is closed by going
    /// back to it, not here. Returns false if there is nothing to close.
    fn close_innermost(&mut self, _before: Option<&dyn Any>) -> bool {
        false
    }

    /// Marks the selected row, or removes its mark.
    fn toggle_mark(&mut self, _cx: &Context<'_>) {}

    /// Removes the marks of all rows.
    fn unmark(&mut self) {}

    /// Returns how many rows are marked.
    fn marked(&self) -> usize {
        0
    }

    /// Returns what the scope can be narrowed to from here, such as the marked or selected
    /// processes.
    fn narrowing(&self, _cx: &Context<'_>) -> Option<Narrowing> {
        None
    }

    /// Whether an action changes so much that the state before it is put into the history.
    fn is_a_step(&self, _action: Action) -> bool {
        false
    }

    /// Whether an action does something with the selected row. Otherwise the line of keys leaves it
    /// out.
    fn offers(&self, _cx: &Context<'_>, _action: Action) -> bool {
        true
    }

    /// Carries out an action that only this view knows.
    fn act(&mut self, _cx: &Context<'_>, _action: Action) -> Done {
        Done::Nothing
    }

    /// Explains the selected row's number in one sentence. Returns `None` if no row is selected.
    fn explain(&self, cx: &Context<'_>) -> Option<String>;
}

/// The function in a selected row.
#[derive(Debug, Clone)]
pub struct FunctionHere {
    /// Its id. `None` if it has no samples any more.
    pub id: Option<FunctionId>,
    /// Name and module if it is a real function. `None` for the end of a stack or a sum.
    pub named: Option<(Arc<str>, Arc<str>)>,
}

/// The result of an action in a view, and what the app has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// The view does not know the action.
    Nothing,
    /// The view has carried out the action.
    Here,
    Said(Notice),
    /// Open the page of this function.
    OpenPage(FunctionId),
    /// Open the code of this function.
    OpenCode(FunctionId),
    /// Open the code of the function with this name in a module.
    OpenCodeNamed {
        name: Arc<str>,
        module: Option<Arc<str>>,
    },
    /// Make this stretch of time the window.
    UseTime {
        start_ns: u64,
        end_ns: u64,
    },
    /// Copy this text to the clipboard.
    Copy(String),
    /// Open this file in an editor, at this line.
    Edit(PathBuf, u32),
}
