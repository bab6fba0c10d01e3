//! The *code* of one function: its source text, its instructions, or both, with
//! the samples of each. It is a list of rows; which there are follows from the
//! layout, and in each of them all samples of the function are found once.

mod answer;
mod before;
pub mod draw;
/// The selected row, and rows that are found.
mod here;
/// Jumps from one instruction to another.
mod jumps;
mod lines;
mod notes;
mod row;
mod rows;
/// Source text and instructions side by side.
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
use profile::FunctionId;
use std::ops::Range;
use std::sync::Arc;

/// What is written of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Source text, and below lines with samples their instructions.
    #[default]
    Both,
    Source,
    Assembly,
}

impl Layout {
    pub fn next(self) -> Self {
        match self {
            Layout::Both => Layout::Source,
            Layout::Source => Layout::Assembly,
            Layout::Assembly => Layout::Both,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Layout::Both => "source+asm",
            Layout::Source => "source",
            Layout::Assembly => "asm",
        }
    }
}

/// Which function, and where in its code.
#[derive(Debug, Clone)]
pub struct Place {
    pub function: FunctionId,
    /// `None` until there is something to select.
    held: Option<RowKey>,
    offset: usize,
    /// The user has selected no row yet: the hottest row is selected, whichever it becomes.
    is_untouched: bool,
    visit: u64,
}

/// What Enter on a row asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    Code(FunctionId),
    /// A function of that name, which was not sampled when called from here.
    Name(Arc<str>),
    /// To another row of the same code.
    Row(usize),
    Nothing,
}

/// Why no editor can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSource;

#[derive(Debug, Default)]
pub struct Code {
    /// Selected in the source text that this stands beside.
    line_beside: Option<u32>,
    desk: Desk<CodeWanted, CodeAnswer>,
    place: Option<Place>,
    layout: Layout,
    syntax: Syntax,
    rows: Vec<CodeRow>,
    jumps: Vec<Jump>,
    notes: Vec<String>,
    width: u16,
    /// Lines that there are, and those that the notes leave to the rows.
    body: usize,
    height: usize,
    find: Option<Find>,
    /// The rows that it finds.
    found: Vec<usize>,
    visits: u64,
    /// The instructions stand beside it.
    is_split: bool,
    /// What was selected before it was split, and what that became.
    unsplit: Option<(RowKey, RowKey)>,
    /// What the other side had selected when this one last followed it.
    followed: Option<RowKey>,
}

impl Code {
    pub fn answer(&self) -> Option<&CodeAnswer> {
        let shown = self.desk.shown()?;
        // That of the function before does not count.
        let wanted = shown.view.function_of(self.place.as_ref()?.function);
        (shown.function.id == wanted).then_some(&**shown)
    }

    pub fn function(&self) -> Option<FunctionId> {
        self.place.as_ref().map(|place| place.function)
    }

    pub fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    /// The layout that is drawn: what was chosen, as far as that can be.
    pub fn layout(&self) -> Layout {
        let answer = self.answer();
        answer.map_or(self.layout, |answer| {
            rows::possible(self.layout, &answer.body)
        })
    }

    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The code of a function, looked for anew.
    pub fn open(&mut self, function: FunctionId) {
        self.visits += 1;
        self.return_to(Place {
            function,
            held: None,
            offset: 0,
            is_untouched: true,
            visit: self.visits,
        });
    }

    /// The same place; what is on disk may have changed.
    pub fn look_again(&mut self) {
        self.visits += 1;
        if let Some(place) = &mut self.place {
            place.visit = self.visits;
        }
    }

    pub fn return_to(&mut self, place: Place) {
        self.place = Some(place);
        self.rebuild();
    }

    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<CodeWanted>> {
        let place = self.place.as_ref()?;
        let wanted = CodeWanted {
            function: place.function,
            is_recorded: snapshot.source.recording.is_some(),
            visit: place.visit,
        };
        self.desk.ask(snapshot, wanted)
    }

    /// Takes an answer, at once if the screen waits for it or nobody is
    /// looking.
    pub fn receive(&mut self, answer: Arc<CodeAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        // What was asked to be looked at anew is awaited, and what a knob was turned for.
        let shown = self.desk.shown();
        let shown = shown.map(|shown| (shown.key.what.visit, shown.key.turn));
        let is_other = shown != Some((key.what.visit, key.turn));
        (is_calm || is_other || self.answer().is_none()) && self.take_waiting()
    }

    pub fn take_waiting(&mut self) -> bool {
        let is_taken = self.desk.take_waiting().is_some();
        if is_taken {
            self.rebuild();
        }
        is_taken
    }

    pub fn release(&mut self) {
        self.desk.clear();
        self.rows = Vec::new();
        self.jumps = Vec::new();
        self.notes = Vec::new();
    }

    pub fn resize(&mut self, width: u16, height: usize) {
        if (self.width, self.body) != (width, height) {
            (self.width, self.body) = (width, height);
            self.rebuild();
        }
    }

    /// The layout that was chosen, whether it can be drawn or not.
    pub fn wanted_layout(&self) -> Layout {
        self.layout
    }

    pub fn set_look(&mut self, layout: Layout, syntax: Syntax) {
        (self.layout, self.syntax) = (layout, syntax);
        self.rebuild();
    }

    pub fn next_layout(&mut self) {
        let before = self.selected().cloned();
        self.layout = self.layout.next();
        self.rebuild_at(before);
    }

    pub fn next_syntax(&mut self) {
        self.syntax = self.syntax.other();
        self.find_rows();
    }

    #[cfg(test)]
    pub fn rows(&self) -> &[CodeRow] {
        &self.rows
    }

    /// What is missing, above the rows.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The rows on the screen, and which of them is selected.
    pub fn shown(&self) -> impl Iterator<Item = (&CodeRow, bool)> {
        let (offset, selected) = (self.offset(), self.selected_index());
        let rows = self.rows.iter().enumerate();
        let rows = rows.skip(offset).take(self.height);
        rows.map(move |(at, row)| (row, Some(at) == selected))
    }

    /// The numbers of the rows on the screen.
    pub fn rows_shown(&self) -> Range<usize> {
        let start = self.offset().min(self.rows.len());
        start..(start + self.height).min(self.rows.len())
    }

    pub fn selected_row(&self) -> Option<usize> {
        self.selected_index()
    }

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

    pub fn selected(&self) -> Option<&CodeRow> {
        self.rows.get(self.selected_index()?)
    }

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

    /// The same, with another row selected that is the same place.
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
        // The first of those that are equal.
        let Some(at) = all.into_iter().rev().max_by_key(samples) else {
            return;
        };
        if self.selected_index().is_none() {
            self.center(at);
        } else if self.rows[at].samples() > 0 {
            // Text that is being read does not move under the eyes.
            match self.is_seen(at) {
                true => self.hold(at),
                false => self.center(at),
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

    fn scroll(&mut self, offset: usize, selected: usize) {
        let last = self.rows.len().saturating_sub(self.height);
        let first = (selected + 1).saturating_sub(self.height);
        let is_start = self.rows[..selected].iter().all(|row| row.key().is_none());
        if let Some(place) = &mut self.place {
            place.offset = match is_start && selected < self.height {
                true => 0,
                false => offset.min(last).clamp(first, selected),
            };
        }
    }

    fn is_seen(&self, at: usize) -> bool {
        (self.offset()..self.offset() + self.height).contains(&at)
    }

    /// Selects a row, and scrolls to it wherever it is.
    pub fn jump_to(&mut self, at: usize) {
        self.touch();
        match self.is_seen(at) {
            true => self.select(at),
            false => self.center(at),
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

    pub fn go(&mut self, motion: Motion) {
        let Some(here) = self.selected_index() else {
            return;
        };
        let all: Vec<usize> = self.selectable().collect();
        let at = all.iter().position(|at| *at == here).unwrap_or(0);
        let page = |half| if half { self.height / 2 } else { self.height }.max(1);
        let target = match motion {
            Motion::Top => 0,
            Motion::Bottom => usize::MAX,
            Motion::Up(rows) => at.saturating_sub(rows),
            Motion::Down(rows) => at + rows,
            Motion::Page { down: false, half } => at.saturating_sub(page(half)),
            Motion::Page { down: true, half } => at + page(half),
        };
        let target = target.min(all.len().saturating_sub(1));
        if let Some(at) = all.get(target) {
            self.select(*at);
        }
    }

    fn selectable(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| row.key().is_some())
            .map(|(at, _)| at)
    }

    pub fn select_line(&mut self, line: usize) {
        if let Some(line) = line.checked_sub(self.notes.len()) {
            self.select(self.offset() + line);
        }
    }

    /// Selects the next line with many samples, or the one before, around the ends.
    pub fn go_hot(&mut self, down: bool) -> Option<(usize, usize)> {
        let hot = rows::hot(&self.rows);
        let here = self.selected_index()?;
        let place = match down {
            true => hot.iter().position(|at| *at > here).unwrap_or(0),
            false => {
                { hot.iter().rposition(|at| *at < here) }.unwrap_or(hot.len().saturating_sub(1))
            }
        };
        let at = *hot.get(place)?;
        self.jump_to(at);
        Some((place + 1, hot.len()))
    }
}
