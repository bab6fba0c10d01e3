//! The *page of one function*: its callers above it, its callees below. It is a list of rows. Some
//! of them can be selected, and open the page of another function.

mod answer;
mod before;
pub mod draw;
mod rows;
mod view;
pub mod words;

pub use answer::{PageAnswer, SECONDS};
pub use before::{Before, Neighbours};
pub use rows::{PageRow, RowKey};

use crate::desk::{Ask, Desk};
use crate::lists::find;
use crate::lists::find::Find;
use crate::lists::motion::Motion;
use engine::snapshot::Snapshot;
use profile::query::NeighbourKind;
use profile::{Function, FunctionId};
use std::sync::Arc;

/// A function and a position on its page. The history keeps it for steps back.
#[derive(Debug, Clone)]
pub struct PagePosition {
    pub function: FunctionId,
    /// The row that the user has selected. `None` until then.
    held: Option<RowKey>,
    /// The selected caller or callee as it was when it was last on the page.
    seen: Option<Function>,
    /// The number of the first row on the screen.
    offset: usize,
    /// Whether all callers have rows, not only those with most samples.
    all_callers: bool,
    /// The same for callees.
    all_callees: bool,
}

impl PagePosition {
    /// Returns the page of a function as it is opened for the first time: scrolled to its top, with
    /// the function itself selected.
    pub fn new(function: FunctionId) -> Self {
        PagePosition {
            function,
            held: None,
            seen: None,
            offset: 0,
            all_callers: false,
            all_callees: false,
        }
    }
}

/// What the app has to do when the user follows a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Open the page of this function.
    Page(FunctionId),
    /// Nothing: the row was opened or closed, or leads nowhere.
    Nothing,
}

/// The state of a pane with the page of a function: which function, its rows, and the answer.
#[derive(Debug, Default)]
pub struct Page {
    desk: Desk<FunctionId, PageAnswer>,
    place: Option<PagePosition>,
    rows: Vec<PageRow>,
    width: u16,
    height: usize,
    find: Option<Find>,
}

impl Page {
    /// Returns the answer on the screen, or `None` if there is none about the function of this page
    /// yet.
    pub fn answer(&self) -> Option<&PageAnswer> {
        let shown = self.desk.shown()?;
        // An answer about the page that was open before does not count.
        let wanted = shown.view.function_of(self.place.as_ref()?.function);
        (shown.view.function_of(shown.key.what) == wanted).then_some(&**shown)
    }

    /// Returns the function whose page is open, or `None` if none was opened yet.
    pub fn function(&self) -> Option<FunctionId> {
        self.place.as_ref().map(|place| place.function)
    }

    /// Returns the open page with its selection and scroll position, so that the history can come
    /// back to it. Returns `None` if none was opened yet.
    pub fn place(&self) -> Option<PagePosition> {
        self.place.clone()
    }

    /// Opens a page: of another function, or one that was open before.
    pub fn open(&mut self, place: PagePosition) {
        self.place = Some(place);
        self.rebuild();
    }

    /// Returns the question about the open page. Returns `None` if no page is open, or if the
    /// question was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<FunctionId>> {
        let function = self.function()?;
        self.desk.ask(snapshot, function)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if the screen
    /// waits for it: because the page has none yet, or a knob was turned.
    pub fn receive(&mut self, answer: Arc<PageAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        // An answer for the new position of a knob is shown at once.
        let is_of_turn = |shown: &PageAnswer| shown.key.turn == key.turn;
        (is_calm || !self.answer().is_some_and(is_of_turn)) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept. Returns false if there was none.
    pub fn take_waiting(&mut self) -> bool {
        let Some(answer) = self.desk.take_waiting() else {
            return false;
        };
        if let Some(place) = &mut self.place {
            let current = |id| answer.view.function_of(id);
            place.held = place.held.map(|key| key.renamed(current));
            if let Some(seen) = &mut place.seen {
                seen.id = current(seen.id);
            }
        }
        self.rebuild();
        true
    }

    /// Frees the answer and the rows when the view is left. The open page stays.
    pub fn release(&mut self) {
        self.desk.clear();
        self.rows = Vec::new();
    }

    /// Sets the size of the page in cells. The number of rows for callers and callees depends on
    /// it.
    pub fn resize(&mut self, width: u16, height: usize) {
        if (self.width, self.height) != (width, height) {
            (self.width, self.height) = (width, height);
            self.rebuild();
        }
    }

    /// Returns the rows on the screen, each with whether it is selected.
    pub fn shown(&self) -> impl Iterator<Item = (&PageRow, bool)> {
        let (offset, selected) = (self.offset(), self.selected_index());
        let rows = self.rows.iter().enumerate().skip(offset).take(self.height);
        rows.map(move |(at, row)| (row, Some(at) == selected))
    }

    fn offset(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.offset)
    }

    /// Returns the number of the selected row: that of the function itself if the user has not
    /// selected another one.
    fn selected_index(&self) -> Option<usize> {
        let key = self.place.as_ref()?.held.unwrap_or(RowKey::Function);
        let position = |key| self.rows.iter().position(|row| row.key() == Some(key));
        position(key).or_else(|| position(RowKey::Function))
    }

    /// Returns the selected row, or `None` without an answer.
    pub fn selected(&self) -> Option<&PageRow> {
        self.rows.get(self.selected_index()?)
    }

    /// Returns the caller or callee of the selected row, or else the function of the page.
    pub fn selected_function(&self) -> Option<&Function> {
        let answer = self.answer()?;
        match self.selected()?.key()? {
            RowKey::Caller(NeighbourKind::Function(id))
            | RowKey::Callee(NeighbourKind::Function(id)) => self.named(id),
            _ => Some(&answer.function),
        }
    }

    /// Returns a function that the page shows, including the selected one when it is no longer in
    /// the answer.
    pub fn named(&self, id: FunctionId) -> Option<&Function> {
        let seen = || self.place.as_ref()?.seen.as_ref();
        let found = self.answer()?.functions.get(&id);
        found.or_else(|| seen().filter(|function| function.id == id))
    }

    /// Stores the selected caller or callee, in case it has no samples in the next answer.
    fn remember(&mut self) {
        let seen = match self.selected().and_then(PageRow::key) {
            Some(RowKey::Function) | None => None,
            Some(_) => self.selected_function().cloned(),
        };
        if let Some(place) = &mut self.place {
            place.seen = seen;
        }
    }

    /// Builds the rows again, because the answer, the page or its size has changed.
    fn rebuild(&mut self) {
        let line = self.selected_index().map(|at| at - self.offset().min(at));
        self.rows = match (self.answer(), &self.place) {
            (Some(answer), Some(place)) => rows::rows(answer, place, self.width, self.height),
            _ => Vec::new(),
        };
        let Some(at) = self.selected_index() else {
            return;
        };
        self.remember();
        // The selected row stays on its line.
        self.scroll(at.saturating_sub(line.unwrap_or(at)), at);
    }

    /// Scrolls to `offset`, or to the nearest position at which the selected row is visible. If it
    /// is the first row that can be selected, the page is scrolled to its top, and if it is the
    /// last one, to its end, so that rows which cannot be selected become visible as well.
    fn scroll(&mut self, offset: usize, selected: usize) {
        let last = self.rows.len().saturating_sub(self.height);
        let first = (selected + 1).saturating_sub(self.height);
        // Whether no row below can be selected.
        let is_end = self.rows[selected + 1..]
            .iter()
            .all(|row| row.key().is_none());
        let is_start = self.rows[..selected].iter().all(|row| row.key().is_none());
        if let Some(place) = &mut self.place {
            place.offset = match (is_start, is_end) {
                (true, _) => 0,
                (_, true) => last.min(selected),
                _ => offset.min(last).clamp(first, selected),
            };
        }
    }

    /// Selects a row and scrolls no more than needed. Does nothing if the row cannot be selected.
    fn select(&mut self, at: usize) {
        let Some(key) = self.rows.get(at).and_then(PageRow::key) else {
            return;
        };
        let offset = self.offset();
        if let Some(place) = &mut self.place {
            place.held = Some(key);
        }
        self.remember();
        self.scroll(offset, at);
    }

    /// Moves the selection. Rows that cannot be selected are skipped and not counted.
    pub fn go(&mut self, motion: Motion) {
        let Some(here) = self.selected_index() else {
            return;
        };
        let all: Vec<usize> = self.selectable().collect();
        let at = all.iter().position(|at| *at == here).unwrap_or(0);
        let target = motion.target(at, self.height, all.len());
        if let Some(at) = all.get(target) {
            self.select(*at);
        }
    }

    /// Returns the numbers of the rows that can be selected.
    fn selectable(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| row.key().is_some())
            .map(|(at, _)| at)
    }

    /// Selects the row on a line of the page, counted from 0 at the top, if it can be selected.
    pub fn select_line(&mut self, line: usize) {
        self.select(self.offset() + line);
    }

    /// Follows the selected row: returns the page of its function, or shows all callers or callees
    /// that the row sums up.
    pub fn follow(&mut self) -> Follow {
        let key = self.selected().and_then(PageRow::key);
        let Some(place) = &mut self.place else {
            return Follow::Nothing;
        };
        match key {
            Some(
                RowKey::Caller(NeighbourKind::Function(id))
                | RowKey::Callee(NeighbourKind::Function(id)),
            ) => return Follow::Page(id),
            Some(RowKey::MoreCallers) => place.all_callers = !place.all_callers,
            Some(RowKey::MoreCallees) => place.all_callees = !place.all_callees,
            _ => return Follow::Nothing,
        }
        place.held = key;
        self.rebuild();
        Follow::Nothing
    }

    /// Returns the heaviest stack as text, root first.
    pub fn stack(&self) -> Option<String> {
        let answer = self.answer()?;
        let heaviest = &answer.page.as_ref()?.heaviest;
        let names = heaviest.iter().filter_map(|id| answer.functions.get(id));
        Some(names.map(|f| &*f.name).collect::<Vec<_>>().join(";"))
    }

    /// Returns the pattern of the search, or `None` if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Starts a search for a pattern, or ends it with `None`. The selection stays.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
    }

    /// Whether the function of a row matches the search. False if there is no search.
    pub fn is_found(&self, row: &PageRow) -> bool {
        let name = || self.name(row);
        self.find
            .as_ref()
            .is_some_and(|find| name().is_some_and(|name| find.matches(name)))
    }

    /// Returns the name in a row that a search looks at, or `None` if the row has none.
    fn name(&self, row: &PageRow) -> Option<&str> {
        match row {
            PageRow::Caller(neighbour) | PageRow::Callee(neighbour) => match neighbour.kind {
                NeighbourKind::Function(id) => self.named(id).map(|function| &*function.name),
                _ => None,
            },
            PageRow::Function => Some(&self.answer()?.function.name),
            _ => None,
        }
    }

    /// Returns the numbers of the rows that match the search.
    fn found_rows(&self) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        let found = rows.filter(|(_, row)| self.is_found(row));
        found.map(|(at, _)| at).collect()
    }

    /// Returns how many rows match the search, and how many rows can be selected.
    pub fn found(&self) -> (usize, usize) {
        (self.found_rows().len(), self.selectable().count())
    }

    /// Selects the next match below the selected row, or above it if `down` is false, and goes on
    /// at the other end. With `including` and `down`, the selected row itself may be the match.
    /// Returns the position of the match among all matches, counted from 1, or `None` if there is
    /// none.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        let found = self.found_rows();
        let here = self.selected_index()?;
        let place = find::next(&found, here, down, including)?;
        self.select(*found.get(place)?);
        Some(place + 1)
    }
}
