//! *Probes*: functions whose calls are counted and timed. A list, and below it what is
//! known of the selected one.
//!
//! ```text
//!   CALLS/S  LAST 12s      P50    P99  ON-CPU  COST  LEFT  FUNCTION
//! >  12,345  ▁▂▂▃▅▅▆▇▇██▇  1.2us  14us    38%  0.8%   52s  hash_search_with_hash…
//!    ────────────────────────────────────────────────────────────────────────────
//!  numbers in sentences, the calls of each second
//!  HOW LONG, FROM: a histogram        │ VALUES, FROM WHERE, THREADS
//! ```

mod draw;
/// Shares of callers, values and threads, cut to the room there is.
mod shares;
mod view;
pub mod words;

use crate::lists::cursor::Cursor;
use crate::lists::motion::Motion;
use engine::probes::{Latency, Probe};
use engine::snapshot::Snapshot;

/// The state of the list: its order, and which probe is selected.
#[derive(Debug, Default)]
pub struct Probes {
    cursor: Cursor<u64>,
    /// The numbers of the probes, in the order of the list.
    numbers: Vec<u64>,
    /// The value of `turn` in the snapshot whose touched probe was selected last.
    turn: u64,
    height: usize,
}

/// The histogram of how long calls took, in at most `lines` steps: from which time on, in
/// words, and how many calls.
pub fn buckets(latency: &Latency, lines: usize) -> impl Iterator<Item = (String, u64)> {
    let buckets = shares::histogram(latency, lines).into_iter();
    buckets.map(|bucket| (bucket.from, bucket.calls))
}

/// The list may take `LIST_MIN` lines, or one in `LIST_PART` lines of the body if that is more.
const LIST_MIN: usize = 2;
const LIST_PART: usize = 3;

impl Probes {
    /// Takes the probes of a new snapshot. If the user has placed or changed one since the
    /// last, that probe is selected.
    pub fn update(&mut self, snapshot: &Snapshot) {
        let probes = &snapshot.probes;
        self.numbers = probes.list.iter().map(|probe| probe.number).collect();
        self.settle();
        // The probe that an order was given for last is the one to look at.
        let touched = self.numbers.iter().position(|n| *n == probes.touched);
        if probes.turn != self.turn
            && let Some(at) = touched
        {
            self.turn = probes.turn;
            self.cursor.select(at, &self.numbers, self.list_height());
        }
    }

    fn settle(&mut self) {
        let height = self.list_height();
        self.cursor.settle(&self.numbers, height);
    }

    /// How many lines the list has; what is below them is about the selected probe.
    pub fn list_height(&self) -> usize {
        let most = (self.height / LIST_PART).max(LIST_MIN);
        self.numbers.len().min(most).max(1)
    }

    /// Sets how many lines the body has, for the list and what is below it.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.settle();
    }

    /// Returns the selected probe; None if there is none, or if it is not in this snapshot.
    pub fn selected<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Probe> {
        let number = self.numbers.get(self.cursor.index())?;
        let mut list = snapshot.probes.list.iter();
        list.find(|probe| probe.number == *number)
    }

    /// Moves the selection in the list.
    pub fn go(&mut self, motion: Motion) {
        let height = self.list_height();
        let at = self.cursor.index();
        let target = motion.target(at, height, self.numbers.len());
        self.cursor.select(target, &self.numbers, height);
    }

    /// Selects the probe on a line of the body, from 0 at the top; nothing below the list.
    pub fn select_line(&mut self, line: usize) {
        if line < self.list_height() {
            let at = self.cursor.offset() + line;
            self.cursor.select(at, &self.numbers, self.list_height());
        }
    }
}
