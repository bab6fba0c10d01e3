//! The *page of one function*: who calls it above, what it calls below. It is a
//! list of rows; some of them can be selected, and lead to the page of another
//! function.

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

/// Which function, and what of its page.
#[derive(Debug, Clone)]
pub struct PagePosition {
    pub function: FunctionId,
    /// The row that is held; `None` while none was selected on purpose.
    held: Option<RowKey>,
    /// The selected caller or callee when it was last on the page.
    seen: Option<Function>,
    /// The number of the first row on the screen.
    offset: usize,
    /// Whether all callers, and all callees, have rows, not only those with most samples.
    all_callers: bool,
    all_callees: bool,
}

impl PagePosition {
    /// Returns the page of a function as it is opened for the first time: its top is shown and
    /// the function itself is selected.
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

/// What the app has to do when a row is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Page(FunctionId),
    /// Nothing more: the row was opened or closed, or leads nowhere.
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
    /// Returns the answer on the screen; None until there is one about the function of this
    /// page.
    pub fn answer(&self) -> Option<&PageAnswer> {
        let shown = self.desk.shown()?;
        // The answer about the page that was open before does not count.
        let wanted = shown.view.function_of(self.place.as_ref()?.function);
        (shown.view.function_of(shown.key.what) == wanted).then_some(&**shown)
    }

    /// Returns the function whose page is open; None before the first.
    pub fn function(&self) -> Option<FunctionId> {
        self.place.as_ref().map(|place| place.function)
    }

    /// Returns the open page with its selection and scroll position, to come back to it; None
    /// before the first page.
    pub fn place(&self) -> Option<PagePosition> {
        self.place.clone()
    }

    /// Opens a page: that of another function, or one that was open before.
    pub fn open(&mut self, place: PagePosition) {
        self.place = Some(place);
        self.rebuild();
    }

    /// Returns the question about the open page; None if none is open, or if it is asked or
    /// answered already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<FunctionId>> {
        let function = self.function()?;
        self.desk.ask(snapshot, function)
    }

    /// Takes an answer. It is shown at once if `is_calm`, or if the screen waits for it: for a
    /// page, or for what a knob was turned to. Returns whether it is shown.
    pub fn receive(&mut self, answer: Arc<PageAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        // What a knob was turned to is shown at once.
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

    /// Frees the answer and the rows, because the view was left; the open page stays.
    pub fn release(&mut self) {
        self.desk.clear();
        self.rows = Vec::new();
    }

    /// Sets the size of the page in cells. How many callers and callees have rows depends on
    /// it.
    pub fn resize(&mut self, width: u16, height: usize) {
        if (self.width, self.height) != (width, height) {
            (self.width, self.height) = (width, height);
            self.rebuild();
        }
    }

    /// The rows on the screen, and which of them is selected.
    pub fn shown(&self) -> impl Iterator<Item = (&PageRow, bool)> {
        let (offset, selected) = (self.offset(), self.selected_index());
        let rows = self.rows.iter().enumerate().skip(offset).take(self.height);
        rows.map(move |(at, row)| (row, Some(at) == selected))
    }

    fn offset(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.offset)
    }

    /// The number of the selected row; that of the function itself if the user selected none.
    fn selected_index(&self) -> Option<usize> {
        let key = self.place.as_ref()?.held.unwrap_or(RowKey::Function);
        let position = |key| self.rows.iter().position(|row| row.key() == Some(key));
        position(key).or_else(|| position(RowKey::Function))
    }

    /// Returns the selected row; None without an answer.
    pub fn selected(&self) -> Option<&PageRow> {
        self.rows.get(self.selected_index()?)
    }

    /// The caller or callee of the selected row, else the function of the page.
    pub fn selected_function(&self) -> Option<&Function> {
        let answer = self.answer()?;
        match self.selected()?.key()? {
            RowKey::Caller(NeighbourKind::Function(id))
            | RowKey::Callee(NeighbourKind::Function(id)) => self.named(id),
            _ => Some(&answer.function),
        }
    }

    /// Returns what is known of a function that the page shows, also of a selected one that is
    /// no longer in the answer.
    pub fn named(&self, id: FunctionId) -> Option<&Function> {
        let seen = || self.place.as_ref()?.seen.as_ref();
        let found = self.answer()?.functions.get(&id);
        found.or_else(|| seen().filter(|function| function.id == id))
    }

    /// Keeps what is known of the selected caller or callee, in case it has no samples any
    /// more.
    fn remember(&mut self) {
        let seen = match self.selected().and_then(PageRow::key) {
            Some(RowKey::Function) | None => None,
            Some(_) => self.selected_function().cloned(),
        };
        if let Some(place) = &mut self.place {
            place.seen = seen;
        }
    }

    /// Lays the rows out anew, because the answer, the page or the room has changed.
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

    /// Scrolls to `offset`, as far as the selected row stays on the screen. With the first
    /// row that can be selected the page begins at its top, and with the last one it ends
    /// at its end, so that what cannot be selected is seen as well.
    fn scroll(&mut self, offset: usize, selected: usize) {
        let last = self.rows.len().saturating_sub(self.height);
        let first = (selected + 1).saturating_sub(self.height);
        // What follows the last row that can be selected is to be seen as well.
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

    /// Selects a row and scrolls no more than needed. A row that cannot be selected changes
    /// nothing.
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

    /// Moves the selection. Steps and pages count only rows that can be selected.
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

    /// Selects the row on a line of the page, from 0 at the top; nothing on a line that cannot
    /// be selected.
    pub fn select_line(&mut self, line: usize) {
        self.select(self.offset() + line);
    }

    /// Where following the selected row leads: to a function's page, or to all that is summed
    /// up in the row.
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

    /// The heaviest stack as text, root first.
    pub fn stack(&self) -> Option<String> {
        let answer = self.answer()?;
        let heaviest = &answer.page.as_ref()?.heaviest;
        let names = heaviest.iter().filter_map(|id| answer.functions.get(id));
        Some(names.map(|f| &*f.name).collect::<Vec<_>>().join(";"))
    }

    /// Returns the pattern that is searched for; None if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Starts a search for a pattern, or ends it with None. It selects nothing.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
    }

    /// Whether the function of a row matches the search; false if there is no search.
    pub fn is_found(&self, row: &PageRow) -> bool {
        let name = || self.name(row);
        self.find
            .as_ref()
            .is_some_and(|find| name().is_some_and(|name| find.matches(name)))
    }

    /// The name in a row that a search looks at; None if the row has none.
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

    /// How many rows match the search, and how many rows can be selected at all.
    pub fn found(&self) -> (usize, usize) {
        (self.found_rows().len(), self.selectable().count())
    }

    /// Selects the next match below the selected row, or the one above if `down` is false,
    /// around the ends. With `including`, on the way down, the selected row itself may be the
    /// match. Returns which of the matches it is, from 1; None if there is none.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        let found = self.found_rows();
        let here = self.selected_index()?;
        let place = find::next(&found, here, down, including)?;
        self.select(*found.get(place)?);
        Some(place + 1)
    }
}
