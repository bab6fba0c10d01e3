//! *Time*: seconds from left to right; the place inside the second, CPUs or threads
//! from top to bottom; samples as shades. It shows all that is kept, whatever the window is;
//! a stretch that is marked here can become the window of every view.

mod answer;
pub mod draw;
pub mod rows;
mod view;
pub mod words;

pub use answer::{TimeAnswer, TimeWanted};

use crate::desk::{Ask, Desk};
use crate::lists::motion::Motion;
use engine::snapshot::Snapshot;
use profile::FunctionId;
use profile::diff::Apart;
use profile::query::HeatBy;
use std::sync::Arc;

pub const SECOND_NS: u64 = 1_000_000_000;

/// Rows that cut a second into equal parts; nothing finer is kept than a
/// hundredth, so others would be uneven and show stripes that are not there.
const ROWS: [usize; 4] = [20, 10, 5, 2];

/// A cell that can be expected to have fewer samples of a busy CPU shows noise.
const SAMPLES_MIN: usize = 2;

/// Lines below the map: the total, the function or the mark, the scale.
pub const FOOT_LINES: usize = 3;

/// Cells before the map: the place inside the second, or CPUs.
const LABEL: u16 = 7;

/// The same if the rows are threads.
const THREAD_LABEL: u16 = 17;

/// A place on the map: which row of which second, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub second: u64,
    pub row: usize,
}

#[derive(Debug, Default)]
pub struct Time {
    desk: Desk<TimeWanted, TimeAnswer>,
    /// Whose samples are marked on the map.
    function: Option<FunctionId>,
    /// What the rows are to be, and how many.
    by: HeatBy,
    rows: usize,
    width: u16,
    /// The cell that is held; `None` while the newest second is watched.
    held: Option<Spot>,
    /// Where a stretch of time begins, or ends.
    mark: Option<Spot>,
    /// Where the cursor was when what it stood for became the window.
    used: Option<Spot>,
}

impl Time {
    pub fn answer(&self) -> Option<&TimeAnswer> {
        self.desk.shown().map(|shown| &**shown)
    }

    /// Rows of the map that is shown.
    pub fn rows(&self) -> usize {
        self.answer().map_or(self.rows, |answer| answer.all.rows)
    }

    /// What the rows are that are shown.
    pub fn by(&self) -> HeatBy {
        self.answer().map_or(self.by, |answer| answer.key.what.by)
    }

    /// Parts of a second, CPUs, threads, and again.
    pub fn next_rows(&mut self) {
        self.by = match self.by {
            HeatBy::Parts => HeatBy::Cpus,
            HeatBy::Cpus => HeatBy::Threads,
            HeatBy::Threads => HeatBy::Parts,
        };
    }

    /// Cells before the map.
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

    /// Marks the samples of a function; they are counted anew.
    pub fn follow(&mut self, function: Option<FunctionId>) {
        self.function = function;
    }

    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<TimeWanted>> {
        let wanted = TimeWanted {
            by: self.by,
            rows: self.rows,
            function: self.function,
            stretch: self.mark.and_then(|_| self.stretch()),
        };
        self.desk.ask(snapshot, wanted)
    }

    pub fn receive(&mut self, answer: Arc<TimeAnswer>, is_calm: bool) -> bool {
        let key = answer.key;
        if !self.desk.receive(&key, key.what, answer) {
            return false;
        }
        let shown = self.answer().map(|shown| (shown.key.turn, shown.key.what));
        (is_calm || shown != Some((key.turn, key.what))) && self.take_waiting()
    }

    pub fn take_waiting(&mut self) -> bool {
        let before = self.rows();
        let is_new = self.desk.take_waiting().is_some();
        let after = self.rows();
        if before != after {
            let moved = |spot: Spot| Spot {
                row: spot.row * after / before.max(1),
                ..spot
            };
            self.held = self.held.map(moved);
            self.mark = self.mark.map(moved);
        }
        is_new
    }

    pub fn release(&mut self) {
        self.desk.clear();
    }

    pub fn resize(&mut self, width: u16, height: usize, rate_hz: u32) {
        self.width = width;
        let room = height.saturating_sub(FOOT_LINES).max(1);
        let is_fit = |rows: &&usize| **rows <= room && **rows * SAMPLES_MIN <= rate_hz as usize;
        self.rows = match self.by {
            HeatBy::Parts => *ROWS.iter().find(is_fit).unwrap_or(&1),
            HeatBy::Cpus | HeatBy::Threads => room,
        };
    }

    /// The first and the last second of the map.
    fn seconds(&self) -> Option<(u64, u64)> {
        let map = &self.answer()?.all;
        let last = map.first_second + (map.columns() as u64).checked_sub(1)?;
        Some((map.first_second, last))
    }

    /// The seconds on the screen; those before the first have no samples.
    pub fn shown_seconds(&self) -> Option<std::ops::Range<u64>> {
        let (first, last) = self.seconds()?;
        let columns = self.columns() as u64;
        let newest = (last + 1).saturating_sub(columns);
        let held = self.held.map_or(newest, |spot| spot.second.max(first));
        let start = newest.min(held);
        Some(start..start + columns)
    }

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

    /// From the mark to the cursor, the earlier first; whole seconds where rows
    /// are not time.
    pub fn marked(&self) -> Option<(Spot, Spot)> {
        let (mark, here) = (self.mark?, self.selected()?);
        let (mut from, mut to) = (mark.min(here), mark.max(here));
        if self.by() != HeatBy::Parts {
            from.row = 0;
            to.row = self.rows().saturating_sub(1);
        }
        Some((from, to))
    }

    /// The first or the last row of the map that a moment is in.
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

    /// What is different in the marked stretch; `None` before that is known.
    pub fn apart(&self) -> Option<&[Apart]> {
        let answer = self.answer()?;
        let is_it = self.mark.is_some() && answer.key.what.stretch == self.stretch();
        answer.apart.as_deref().filter(|_| is_it)
    }

    /// A stretch that begins where the mouse was pressed and ends where it is.
    pub fn drag_to(&mut self, column: u16, line: usize) {
        if self.mark.is_none() {
            self.set_mark();
        }
        self.select_cell(column, line);
    }

    pub fn set_mark(&mut self) {
        self.mark = self.selected();
        self.held = self.mark;
    }

    /// What is marked is the window now.
    pub fn use_up(&mut self) {
        self.mark = None;
        self.used = self.held;
    }

    /// False if there is none.
    pub fn end_mark(&mut self) -> bool {
        self.mark.take().is_some()
    }

    /// What Enter takes as the window: the marked stretch, else the second under
    /// the cursor. In nanoseconds, from the first to before the last.
    pub fn stretch(&self) -> Option<(u64, u64)> {
        if let Some((from, to)) = self.marked() {
            return Some((self.start_ns(from), self.end_ns(to)));
        }
        let second = self.selected()?.second;
        Some((second * SECOND_NS, (second + 1) * SECOND_NS))
    }

    /// The same, but nothing while it watches the newest second, or where that is
    /// the window already.
    pub fn chosen(&self) -> Option<(u64, u64)> {
        let is_new = self.mark.is_some() || self.held != self.used;
        self.held.filter(|_| is_new).and_then(|_| self.stretch())
    }

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

    /// How long a cell of the map is.
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
            // From now on the newest second again.
            Motion::Bottom if self.mark.is_none() => self.held = None,
            Motion::Bottom => self.select(last, usize::MAX),
        }
    }

    pub fn go_sideways(&mut self, right: bool) {
        if let Some(here) = self.selected() {
            let second = match right {
                true => here.second + 1,
                false => here.second.saturating_sub(1),
            };
            self.select(second, here.row);
        }
    }

    pub fn select_cell(&mut self, column: u16, line: usize) {
        let seconds = self.shown_seconds();
        if let (Some(seconds), Some(column)) = (seconds, column.checked_sub(self.label()))
            && line < self.rows()
        {
            self.select(seconds.start + u64::from(column), line);
        }
    }
}
