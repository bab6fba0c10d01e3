//! *Probes* count and time the calls of functions. The view is a list of probes, with details about
//! the selected one below.
//!
//! ```text
//!   CALLS/S  LAST 12s      P50    P99  ON-CPU  COST  LEFT  FUNCTION
//! >  12,345  ▁▂▂▃▅▅▆▇▇██▇  1.2us  14us    38%  0.8%   52s  hash_search_with_hash…
//!    ────────────────────────────────────────────────────────────────────────────
//!  numbers in sentences, the calls of each second
//!  HOW LONG, FROM: a histogram        │ VALUES, FROM WHERE, THREADS
//! ```

mod draw;
/// Shares of callers, values and threads, cut to the available lines.
mod shares;
mod view;
pub mod words;

use crate::lists::cursor::Cursor;
use crate::lists::motion::Motion;
use engine::probes::{Latency, Probe};
use engine::snapshot::Snapshot;

/// The state of the list: its order, and the selected probe.
#[derive(Debug, Default)]
pub struct Probes {
    cursor: Cursor<u64>,
    /// The numbers of the probes, in the order of the list.
    numbers: Vec<u64>,
    /// The value of `turn` in the snapshot whose touched probe was selected last.
    turn: u64,
    height: usize,
}

/// Returns the histogram of how long calls took, in at most `lines` steps: the lower bound of each
/// step in words, and its number of calls.
pub fn buckets(latency: &Latency, lines: usize) -> impl Iterator<Item = (String, u64)> {
    let buckets = shares::histogram(latency, lines).into_iter();
    buckets.map(|bucket| (bucket.from, bucket.calls))
}

/// The list may take at least this many lines.
const LIST_MIN: usize = 2;
/// The list may take 1/3 of the lines of the body if that is more than `LIST_MIN`.
const LIST_PART: usize = 3;

impl Probes {
    /// Takes the probes of a new snapshot. If the user has placed or changed a probe since the last
    /// one, that probe is selected.
    pub fn update(&mut self, snapshot: &Snapshot) {
        let probes = &snapshot.probes;
        self.numbers = probes.list.iter().map(|probe| probe.number).collect();
        self.settle();
        // The probe of the user's last order is the one that the user wants to see.
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

    /// Returns how many lines the list has. The lines below it are about the selected probe.
    pub fn list_height(&self) -> usize {
        let most = (self.height / LIST_PART).max(LIST_MIN);
        self.numbers.len().min(most).max(1)
    }

    /// Sets the number of lines of the body: list and details together.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.settle();
    }

    /// Returns the selected probe. Returns `None` if there is none, or if it is not in this
    /// snapshot.
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

    /// Selects the probe on a line of the body, counted from 0 at the top. Lines below the list are
    /// ignored.
    pub fn select_line(&mut self, line: usize) {
        if line < self.list_height() {
            let at = self.cursor.offset() + line;
            self.cursor.select(at, &self.numbers, self.list_height());
        }
    }
}
