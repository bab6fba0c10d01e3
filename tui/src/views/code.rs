//! The *code* of one function: its source text, its instructions, or both, with the samples of
//! each. The view is a list of rows. The layout decides which rows there are; in every layout their
//! samples add up to all samples of the function.

mod answer;
mod before;
pub mod draw;
/// The selected row, and the search for rows.
mod here;
/// Jumps from one instruction to another.
mod jumps;
mod lines;
mod notes;
mod row;
mod rows;
/// Source text and instructions side by side, in two panes.
mod split;
mod view;
pub mod words;

pub use answer::{CodeAnswer, CodeWanted, Spot};
pub use before::Before;
pub use jumps::Jump;
pub use row::{CodeRow, RowKey};
pub use rows::rows as code_rows;

use crate::code::Syntax;
use crate::desk::{Ask, Desk};
use crate::lists::find::Find;
use crate::lists::motion::Motion;
use engine::snapshot::Snapshot;
use profile::{FunctionId, Metric};
use std::ops::Range;
use std::sync::Arc;

/// Which parts of the code are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Source text, and below each line that has samples its instructions.
    #[default]
    Both,
    Source,
    Assembly,
}

impl Layout {
    /// Returns the layout after this one: both, source text, instructions, and both again.
    pub fn next(self) -> Self {
        match self {
            Layout::Both => Layout::Source,
            Layout::Source => Layout::Assembly,
            Layout::Assembly => Layout::Both,
        }
    }

    /// Returns the name of the layout, for the line of keys and for the file that keeps it.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Both => "source+asm",
            Layout::Source => "source",
            Layout::Assembly => "asm",
        }
    }
}

/// A function and a position in its code. The history keeps it for steps back.
#[derive(Debug, Clone)]
pub struct CodePosition {
    pub function: FunctionId,
    /// The selected row. `None` until there are rows.
    held: Option<RowKey>,
    /// The number of the first row on the screen.
    offset: usize,
    /// The user has not selected a row yet, so that the hottest row is selected in every new
    /// answer.
    is_untouched: bool,
    /// The value of `Code::visits` when the code was opened. With a new value, files are read
    /// again.
    visit: u64,
}

/// What Enter on a row opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// The code of this function.
    Code(FunctionId),
    /// The code of the function with this name. It is called here, but no sample was taken during
    /// that call.
    Name(Arc<str>),
    /// The row of the same code that a jump leads to, by its number.
    Row(usize),
    /// The row leads nowhere.
    Nothing,
}

/// There is no source text that an editor could open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSource;

/// The state of a pane with code: the function, the rows, and which row is selected. When source
/// text and instructions are shown side by side, each of the two panes has such a state.
#[derive(Debug, Default)]
pub struct Code {
    /// In the pane with the instructions: the line that is selected in the source text beside it.
    line_beside: Option<u32>,
    desk: Desk<CodeWanted, CodeAnswer>,
    place: Option<CodePosition>,
    layout: Layout,
    syntax: Syntax,
    rows: Vec<CodeRow>,
    jumps: Vec<Jump>,
    notes: Vec<String>,
    width: u16,
    /// Number of lines of the body, notes included.
    /// `height` is the number of lines that the notes leave to the rows.
    body: usize,
    height: usize,
    find: Option<Find>,
    /// The numbers of the rows that match `find`.
    found: Vec<usize>,
    /// How often code was opened or read again.
    visits: u64,
    /// The instructions are shown in a pane of their own beside this one.
    is_split: bool,
    /// The row that was selected before the panes were split, and the row that was selected after
    /// it. When the panes are joined and the second is still selected, the first is selected again.
    unsplit: Option<(RowKey, RowKey)>,
    /// The row that was selected in the source text when this pane last followed it.
    followed: Option<RowKey>,
}

impl Code {
    /// Returns the answer on the screen, or `None` if there is no answer about the open function
    /// yet.
    pub fn answer(&self) -> Option<&CodeAnswer> {
        let shown = self.desk.shown()?;
        // An answer about the function that was open before does not count.
        let wanted = shown.view.function_of(self.place.as_ref()?.function);
        (shown.function.id == wanted).then_some(&**shown)
    }

    /// Returns the function that is open, with or without an answer, or `None` if none was opened
    /// yet.
    pub fn function(&self) -> Option<FunctionId> {
        self.place.as_ref().map(|place| place.function)
    }

    /// Returns the open function and the position in its code, or `None` if none was opened yet.
    pub fn place(&self) -> Option<CodePosition> {
        self.place.clone()
    }

    /// Returns the layout that is drawn: the chosen one, or another one if source text or
    /// instructions are missing.
    pub fn layout(&self) -> Layout {
        let answer = self.answer();
        answer.map_or(self.layout, |answer| {
            rows::possible(self.layout, &answer.body)
        })
    }

    /// Whether the code can be drawn in more than one layout.
    pub fn has_layouts(&self) -> bool {
        let drawn = |answer: &CodeAnswer| rows::possible(Layout::Both, &answer.body);
        self.answer()
            .is_some_and(|answer| drawn(answer) == Layout::Both)
    }

    /// Returns the chosen way of writing instructions, AT&T or Intel.
    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Opens the code of a function at its hottest row. The files are read again.
    pub fn open(&mut self, function: FunctionId) {
        self.visits += 1;
        self.return_to(CodePosition {
            function,
            held: None,
            offset: 0,
            is_untouched: true,
            visit: self.visits,
        });
    }

    /// Reads the files of the open function again, because they may have changed on disk.
    pub fn look_again(&mut self) {
        self.visits += 1;
        if let Some(place) = &mut self.place {
            place.visit = self.visits;
        }
    }

    /// Opens the function of this position, and scrolls there. There are no rows until there is an
    /// answer about the function.
    pub fn return_to(&mut self, place: CodePosition) {
        self.place = Some(place);
        self.rebuild();
    }

    /// Returns the question about the open function. Returns `None` if no function is open, or if
    /// the question was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<CodeWanted>> {
        let place = self.place.as_ref()?;
        let wanted = CodeWanted {
            function: place.function,
            is_recorded: snapshot.source.recording.is_some(),
            visit: place.visit,
        };
        self.desk.ask(snapshot, wanted)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if the screen
    /// waits for it: because none is shown yet, files were to be read again, or a knob was turned.
    /// Otherwise it is kept.
    pub fn receive(&mut self, answer: Arc<CodeAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        // The screen waits for the answer if files were to be read again or a knob was turned.
        let shown = self.desk.shown();
        let shown = shown.map(|shown| (shown.key.what.visit, shown.key.turn));
        let is_other = shown != Some((key.what.visit, key.turn));
        (is_calm || is_other || self.answer().is_none()) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept. Returns false if there was none.
    pub fn take_waiting(&mut self) -> bool {
        let is_taken = self.desk.take_waiting().is_some();
        if is_taken {
            self.rebuild();
        }
        is_taken
    }

    /// Frees the answer and the rows when the view is left. The open function stays.
    pub fn release(&mut self) {
        self.desk.clear();
        self.rows = Vec::new();
        self.jumps = Vec::new();
        self.notes = Vec::new();
    }

    /// Sets the size of the body in cells, notes included. If it changed, the rows are built again.
    pub fn resize(&mut self, width: u16, height: usize) {
        if (self.width, self.body) != (width, height) {
            (self.width, self.body) = (width, height);
            self.rebuild();
        }
    }

    /// Returns the layout that was chosen, even if it cannot be drawn for this function.
    pub fn wanted_layout(&self) -> Layout {
        self.layout
    }

    /// Sets the layout and the syntax that were saved in an earlier run.
    pub fn set_look(&mut self, layout: Layout, syntax: Syntax) {
        (self.layout, self.syntax) = (layout, syntax);
        self.rebuild();
    }

    /// Switches to the next layout. The same line or instruction stays selected.
    pub fn next_layout(&mut self) {
        let before = self.selected().cloned();
        self.layout = self.layout.next();
        self.rebuild_at(before);
    }

    /// Sets the syntax of instructions. The search is repeated, because the texts of the rows
    /// change.
    pub fn set_syntax(&mut self, syntax: Syntax) {
        self.syntax = syntax;
        self.find_rows();
    }

    /// Returns all rows, on the screen or not.
    #[cfg(test)]
    pub fn rows(&self) -> &[CodeRow] {
        &self.rows
    }

    /// Returns the lines of text above the rows, which say what part of the code is missing and
    /// why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the rows on the screen, each with whether it is selected.
    pub fn shown(&self) -> impl Iterator<Item = (&CodeRow, bool)> {
        let (offset, selected) = (self.offset(), self.selected_index());
        let rows = self.rows.iter().enumerate().skip(offset).take(self.height);
        rows.map(move |(at, row)| (row, Some(at) == selected))
    }

    /// Returns the numbers of the rows on the screen. Rows are counted from 0.
    pub fn rows_shown(&self) -> Range<usize> {
        let start = self.offset().min(self.rows.len());
        start..(start + self.height).min(self.rows.len())
    }

    /// Returns the number of the selected row, counted from 0, or `None` without an answer.
    pub fn selected_row(&self) -> Option<usize> {
        self.selected_index()
    }

    /// Returns the jumps between rows of instructions, which are drawn as lines in the margin.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    fn offset(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.offset)
    }

    fn selected_index(&self) -> Option<usize> {
        let key = self.place.as_ref()?.held?;
        self.rows.iter().position(|row| row.key() == Some(key))
    }

    /// Returns the selected row, or `None` without an answer.
    pub fn selected(&self) -> Option<&CodeRow> {
        self.rows.get(self.selected_index()?)
    }

    /// Builds the rows again. The selected row stays on its line of the screen. If it is gone, or
    /// the user has not selected a row yet, the hottest row is selected.
    fn rebuild(&mut self) {
        let line = self.selected_index().map(|at| at - self.offset().min(at));
        self.make_rows();
        match self.selected_index() {
            // The selected row stays on its line.
            Some(at) => self.scroll(at.saturating_sub(line.unwrap_or(self.height / 2)), at),
            None if self.answer().is_some() => self.select_hottest(),
            None => {}
        }
        let is_untouched = self.place.as_ref().is_some_and(|place| place.is_untouched);
        if is_untouched && self.answer().is_some() {
            self.select_hottest();
        }
    }

    /// Builds the rows again, and selects the row that shows the same place as `before` did, or the
    /// hottest row if there is none.
    fn rebuild_at(&mut self, before: Option<CodeRow>) {
        self.make_rows();
        let here = before.and_then(|row| rows::same_place(&row, self.answer()?, &self.rows));
        match here {
            Some(at) => self.center(at),
            None => self.select_hottest(),
        }
    }

    fn make_rows(&mut self) {
        (self.rows, self.notes) = match self.answer() {
            Some(answer) => {
                let notes = notes::notes(answer, self.layout, self.width, self.body / 3);
                (rows::rows(answer, self.drawn()), notes)
            }
            None => Default::default(),
        };
        self.jumps = match self.answer() {
            Some(answer) => jumps::jumps(&self.rows, &answer.body),
            None => Vec::new(),
        };
        self.height = self.body - self.notes.len();
        self.find_rows();
    }

    fn select_hottest(&mut self) {
        let samples = |at: &usize| self.rows[*at].samples();
        let all: Vec<usize> = self.selectable().collect();
        // The first one of several with equal samples.
        let Some(at) = all.into_iter().rev().max_by_key(samples) else {
            return;
        };
        if self.selected_index().is_none() {
            self.center(at);
        } else if self.rows[at].samples() > 0 {
            // While the row is visible, text that the user is reading does not move.
            if self.is_seen(at) {
                self.hold(at)
            } else {
                self.center(at)
            }
        }
    }

    fn hold(&mut self, at: usize) {
        if let Some(place) = &mut self.place {
            place.held = self.rows[at].key();
        }
    }

    fn center(&mut self, at: usize) {
        self.hold(at);
        self.scroll(at.saturating_sub(self.height / 2), at);
    }

    fn touch(&mut self) {
        if let Some(place) = &mut self.place {
            place.is_untouched = false;
        }
    }

    /// Scrolls to `offset`, or to the nearest position at which the selected row is visible. If no
    /// row above it can be selected, the heads above it are shown as well.
    fn scroll(&mut self, offset: usize, selected: usize) {
        let last = self.rows.len().saturating_sub(self.height);
        let first = (selected + 1).saturating_sub(self.height);
        let is_start = self.rows[..selected].iter().all(|row| row.key().is_none());
        if let Some(place) = &mut self.place {
            place.offset = if is_start && selected < self.height {
                0
            } else {
                offset.min(last).clamp(first, selected)
            };
        }
    }

    fn is_seen(&self, at: usize) -> bool {
        (self.offset()..self.offset() + self.height).contains(&at)
    }

    /// Selects a row, and scrolls to it if it is not visible.
    pub fn jump_to(&mut self, at: usize) {
        self.touch();
        if self.is_seen(at) {
            self.select(at)
        } else {
            self.center(at)
        }
    }

    fn select(&mut self, at: usize) {
        let is_row = |row: &CodeRow| row.key().is_some();
        if !self.rows.get(at).is_some_and(is_row) {
            return;
        }
        let offset = self.offset();
        self.touch();
        self.hold(at);
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

    fn selectable(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| row.key().is_some())
            .map(|(at, _)| at)
    }

    /// Selects the row on a line of the body, counted from 0 at the top. A note or a head cannot be
    /// selected.
    pub fn select_line(&mut self, line: usize) {
        if let Some(line) = line.checked_sub(self.notes.len()) {
            self.select(self.offset() + line);
        }
    }

    /// Selects the next hot row (see [`rows::hot`]), or the previous one if `down` is false; after
    /// the last one comes the first. Returns its position among the hot rows, counted from 1, and
    /// their number. Returns `None` if no row is selected, or none is hot.
    pub fn go_hot(&mut self, down: bool) -> Option<(usize, usize)> {
        let answer = self.answer();
        // A thread waits in a function that the line calls, so that a line itself has next to no
        // waiting time.
        let metric = answer.and_then(CodeAnswer::metric);
        let waiting = answer.filter(|_| metric.is_some_and(Metric::is_waiting));
        let hot = rows::hot(&self.rows, |row| match waiting {
            Some(answer) => answer.spot(row).map_or(0, |spot| spot.total),
            None => row.samples(),
        });
        let here = self.selected_index()?;
        let place = if down {
            hot.iter().position(|at| *at > here).unwrap_or(0)
        } else {
            hot.iter()
                .rposition(|at| *at < here)
                .unwrap_or(hot.len().saturating_sub(1))
        };
        let at = *hot.get(place)?;
        self.jump_to(at);
        Some((place + 1, hot.len()))
    }
}
