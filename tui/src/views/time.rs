//! *Time* is a map: seconds from left to right; the position inside the second, CPUs or threads
//! from top to bottom; samples as shades. It shows all time that is kept, independent of the
//! window. A stretch of time that is marked here can become the window of every view.

mod answer;
pub mod draw;
pub mod rows;
mod view;
pub mod words;

pub use answer::{TimeAnswer, TimeWanted};

use crate::calendar::SECOND_NS;
use crate::desk::{Ask, Desk};
use crate::lists::motion::Motion;
use engine::snapshot::Snapshot;
use profile::FunctionId;
use profile::diff::Apart;
use profile::query::HeatBy;
use std::sync::Arc;

/// The possible numbers of rows that a second is divided into. Samples are kept by hundredths of a
/// second, so that other numbers would make rows of unequal length, which look like stripes.
const ROWS: [usize; 4] = [20, 10, 5, 2];

/// The number of rows is limited so that a cell of a busy CPU has at least this many samples on
/// average: fewer would show noise.
const SAMPLES_MIN: usize = 2;

/// Number of lines below the map: the total, the function or the mark, the scale.
pub const FOOT_LINES: usize = 3;

/// Width of the labels to the left of the map: the position inside the second, or the CPUs.
const LABEL: u16 = 7;

/// Width of the labels to the left of the map if they are names of threads.
const THREAD_LABEL: u16 = 17;

/// A cell of the map: its second, and its row counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub second: u64,
    pub row: usize,
}

/// The state of the map: the answer, the meaning of its rows, the cursor and the mark.
#[derive(Debug, Default)]
pub struct Time {
    desk: Desk<TimeWanted, TimeAnswer>,
    /// The function whose samples are highlighted on the map.
    function: Option<FunctionId>,
    /// What the rows of the next map stand for.
    by: HeatBy,
    /// Maximum number of rows of the next map.
    rows: usize,
    width: u16,
    /// The cell that the user has selected. `None` while the cursor follows the newest second.
    held: Option<Spot>,
    /// One end of the marked stretch of time.
    mark: Option<Spot>,
    /// The other end once it is set. `None` while the other end follows the cursor.
    mark_end: Option<Spot>,
    /// The position of the cursor when the marked stretch, or its second, became the window.
    used: Option<Spot>,
}

impl Time {
    /// Returns the answer on the screen, or `None` before the first answer.
    pub fn answer(&self) -> Option<&TimeAnswer> {
        self.desk.shown().map(|shown| &**shown)
    }

    /// Returns the number of rows of the map.
    pub fn rows(&self) -> usize {
        self.answer().map_or(self.rows, |answer| answer.all.rows)
    }

    /// Returns what the rows of the map on the screen stand for.
    pub fn by(&self) -> HeatBy {
        self.answer().map_or(self.by, |answer| answer.key.what.by)
    }

    /// Switches what the rows of the next map stand for: from parts of a second to CPUs, to
    /// threads, and back to parts.
    pub fn next_rows(&mut self) {
        self.by = match self.by {
            HeatBy::Parts => HeatBy::Cpus,
            HeatBy::Cpus => HeatBy::Threads,
            HeatBy::Threads => HeatBy::Parts,
        };
    }

    /// Returns the width of the labels to the left of the map.
    pub fn label(&self) -> u16 {
        match self.by() {
            HeatBy::Parts | HeatBy::Cpus => LABEL,
            HeatBy::Threads => THREAD_LABEL,
        }
    }

    fn columns(&self) -> usize {
        let columns = self.width.saturating_sub(self.label() + 1);
        usize::from(columns).max(1)
    }

    /// Highlights the samples of this function in the next answer, or of no function if `None`.
    pub fn follow(&mut self, function: Option<FunctionId>) {
        self.function = function;
    }

    /// Returns the question for the map that is wanted, or `None` if it was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<TimeWanted>> {
        let wanted = TimeWanted {
            by: self.by,
            rows: self.rows,
            function: self.function,
            stretch: self.mark.and_then(|_| self.stretch()),
        };
        self.desk.ask(snapshot, wanted)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if it is
    /// another map than the one on the screen.
    pub fn receive(&mut self, answer: Arc<TimeAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        let shown = self.answer().map(|shown| (shown.key.turn, shown.key.what));
        (is_calm || shown != Some((key.turn, key.what))) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept. Cursor and mark are moved if the map has another
    /// number of rows. Returns false if there was no answer.
    pub fn take_waiting(&mut self) -> bool {
        let before = self.rows();
        let is_new = self.desk.take_waiting().is_some();
        let after = self.rows();
        if before != after {
            let moved = |spot: Spot| Spot {
                row: spot.row * after / before.max(1),
                ..spot
            };
            for spot in [
                &mut self.held,
                &mut self.mark,
                &mut self.mark_end,
                &mut self.used,
            ] {
                *spot = spot.map(moved);
            }
        }
        is_new
    }

    /// Frees the answer when the view is left. Cursor and mark stay.
    pub fn release(&mut self) {
        self.desk.clear();
    }

    /// Sets the size of the body in cells, and from it the number of rows of the next map.
    /// `rate_hz` is the number of samples per second of a busy CPU.
    pub fn resize(&mut self, width: u16, height: usize, rate_hz: u32) {
        self.width = width;
        let room = height.saturating_sub(FOOT_LINES).max(1);
        let is_fit = |rows: &&usize| **rows <= room && **rows * SAMPLES_MIN <= rate_hz as usize;
        self.rows = match self.by {
            HeatBy::Parts => *ROWS.iter().find(is_fit).unwrap_or(&1),
            HeatBy::Cpus | HeatBy::Threads => room,
        };
    }

    /// Returns the first and the last second of the map, or `None` without an answer.
    fn seconds(&self) -> Option<(u64, u64)> {
        let map = &self.answer()?.all;
        let last = map.first_second + (map.columns() as u64).checked_sub(1)?;
        Some((map.first_second, last))
    }

    /// Returns the start of the newest second in nanoseconds, or `None` without an answer.
    pub fn newest_ns(&self) -> Option<u64> {
        self.seconds().map(|(_, last)| last * SECOND_NS)
    }

    /// Returns the seconds on the screen. If the map has fewer seconds than columns, some of these
    /// are before its first one. Returns `None` without an answer.
    pub fn shown_seconds(&self) -> Option<std::ops::Range<u64>> {
        let (first, last) = self.seconds()?;
        let columns = self.columns() as u64;
        let newest = (last + 1).saturating_sub(columns);
        let held = self.held.map_or(newest, |spot| spot.second.max(first));
        let start = newest.min(held);
        Some(start..start + columns)
    }

    /// Returns the cell of the cursor: the selected one, or else the top of the newest second.
    /// Returns `None` without an answer.
    pub fn selected(&self) -> Option<Spot> {
        let (first, last) = self.seconds()?;
        let newest = Spot {
            second: last,
            row: 0,
        };
        let spot = self.held.unwrap_or(newest);
        Some(Spot {
            second: spot.second.clamp(first, last),
            row: spot.row.min(self.rows().saturating_sub(1)),
        })
    }

    /// Returns the first and the last cell of the marked stretch; whole seconds if rows are not
    /// parts of a second. Returns `None` without a mark.
    pub fn marked(&self) -> Option<(Spot, Spot)> {
        let (mark, end) = (self.mark?, self.mark_end.or_else(|| self.selected())?);
        let (mut from, mut to) = (mark.min(end), mark.max(end));
        if self.by() != HeatBy::Parts {
            from.row = 0;
            to.row = self.rows().saturating_sub(1);
        }
        Some((from, to))
    }

    /// Returns the cell of a time in nanoseconds. If rows are not parts of a second, the time
    /// belongs to all rows of its second: the first row is returned, or the last one if `is_end`.
    pub fn spot_of(&self, ns: u64, is_end: bool) -> Spot {
        let row = match self.by() {
            HeatBy::Parts => (ns % SECOND_NS / self.row_ns()) as usize,
            _ if is_end => self.rows().saturating_sub(1),
            _ => 0,
        };
        Spot {
            second: ns / SECOND_NS,
            row,
        }
    }

    /// Returns what differs between the marked stretch of time and all other time. Returns `None`
    /// if nothing is marked, or if the answer about it has not come yet.
    pub fn apart(&self) -> Option<&[Apart]> {
        let answer = self.answer()?;
        let is_it = self.mark.is_some() && answer.key.what.stretch == self.stretch();
        answer.apart.as_deref().filter(|_| is_it)
    }

    /// Handles a drag of the mouse to a cell: the stretch starts where the button was pressed and
    /// ends here.
    pub fn drag_to(&mut self, column: u16, line: usize) {
        if self.mark.is_none() || self.mark_end.is_some() {
            self.set_mark();
        }
        self.select_cell(column, line);
    }

    /// Sets the mark at the cursor: one end of a stretch of time or, if that is set, the other end.
    /// If both are set, the cursor becomes the start of a new stretch.
    pub fn set_mark(&mut self) {
        self.held = self.selected();
        if self.mark.is_some() && self.mark_end.is_none() {
            self.mark_end = self.held;
        } else {
            (self.mark, self.mark_end) = (self.held, None);
        }
    }

    /// Whether one end of a stretch is set and the other end follows the cursor.
    pub fn is_marking(&self) -> bool {
        self.mark.is_some() && self.mark_end.is_none()
    }

    /// Removes the mark because the stretch has become the window of all views.
    pub fn use_up(&mut self) {
        self.end_mark();
        self.used = self.held;
    }

    /// Removes the mark. Returns false if there is none.
    pub fn end_mark(&mut self) -> bool {
        self.mark_end = None;
        self.mark.take().is_some()
    }

    /// Returns the time that Enter makes the window: the marked stretch, or else the second of the
    /// cursor. Start and end are in nanoseconds, and the end is excluded. Returns `None` without an
    /// answer.
    pub fn stretch(&self) -> Option<(u64, u64)> {
        if let Some((from, to)) = self.marked() {
            return Some((self.start_ns(from), self.end_ns(to)));
        }
        let second = self.selected()?.second;
        Some((second * SECOND_NS, (second + 1) * SECOND_NS))
    }

    /// Returns the same time as [`Time::stretch`], but `None` while the cursor follows the newest
    /// second, and while that time is already the window.
    pub fn chosen(&self) -> Option<(u64, u64)> {
        let is_new = self.mark.is_some() || self.held != self.used;
        self.held.filter(|_| is_new).and_then(|_| self.stretch())
    }

    /// Returns the start of a cell in nanoseconds on the clock of the samples.
    pub fn start_ns(&self, spot: Spot) -> u64 {
        let row = match self.by() {
            HeatBy::Parts => spot.row as u64,
            HeatBy::Cpus | HeatBy::Threads => 0,
        };
        spot.second * SECOND_NS + row * self.row_ns()
    }

    fn end_ns(&self, spot: Spot) -> u64 {
        self.start_ns(spot) + self.row_ns()
    }

    /// Returns the duration of a cell in nanoseconds.
    pub fn row_ns(&self) -> u64 {
        match self.by() {
            HeatBy::Parts => SECOND_NS / self.rows().max(1) as u64,
            HeatBy::Cpus | HeatBy::Threads => SECOND_NS,
        }
    }

    fn select(&mut self, second: u64, row: usize) {
        if let Some((first, last)) = self.seconds() {
            self.held = Some(Spot {
                second: second.clamp(first, last),
                row: row.min(self.rows().saturating_sub(1)),
            });
        }
    }

    /// Moves the cursor: up and down by rows, and by pages to earlier and later seconds. The key
    /// for the end lets it follow the newest second or, with a mark, selects the last cell.
    pub fn go(&mut self, motion: Motion) {
        let (Some(here), Some((first, last))) = (self.selected(), self.seconds()) else {
            return;
        };
        let page = |half| (self.columns() / if half { 4 } else { 2 }).max(1) as u64;
        match motion {
            Motion::Up(rows) => self.select(here.second, here.row.saturating_sub(rows)),
            Motion::Down(rows) => self.select(here.second, here.row + rows),
            Motion::Page { down: false, half } => {
                self.select(here.second.saturating_sub(page(half)), here.row);
            }
            Motion::Page { down: true, half } => self.select(here.second + page(half), here.row),
            Motion::Top => self.select(first, 0),
            // From now on the cursor follows the newest second again.
            Motion::Bottom if self.mark.is_none() => self.held = None,
            Motion::Bottom => self.select(last, usize::MAX),
        }
    }

    /// Moves the cursor by one second, to a later one if `right`. It stays on the map.
    pub fn go_sideways(&mut self, right: bool) {
        if let Some(here) = self.selected() {
            let second = if right {
                here.second + 1
            } else {
                here.second.saturating_sub(1)
            };
            self.select(second, here.row);
        }
    }

    /// Moves the cursor to a cell of the body; `column` and `line` are counted from its top left
    /// corner. Does nothing to the left of the map and below it.
    pub fn select_cell(&mut self, column: u16, line: usize) {
        let seconds = self.shown_seconds();
        if let (Some(seconds), Some(column)) = (seconds, column.checked_sub(self.label()))
            && line < self.rows()
        {
            self.select(seconds.start + u64::from(column), line);
        }
    }
}
