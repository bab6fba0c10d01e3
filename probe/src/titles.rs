//! *Titles*: the command lines of processes, which some rewrite while they run. They are in the
//! memory of the process, which may delay a reader, so they are read on another thread.

use crate::aside::Aside;
use crate::ids::ProcessId;
use crate::owner::command_line;
use std::io;
use std::sync::Arc;
use symbolize::Files;

/// Maximum number of titles that are requested in one turn of the sampler, of which there are
/// twenty per second: a read takes some 50 µs of CPU time.
const TITLES_MAX: u32 = 4;

/// Reads titles.
#[derive(Debug)]
pub struct Titles {
    /// The thread that reads; `None` if it could not be started: then there are no titles.
    reader: Option<Aside<Whose, Title>>,
    /// How many titles of known processes may still be requested in this turn.
    left: u32,
    outstanding: usize,
}

/// A program that a process runs.
#[derive(Debug, Clone, Copy)]
pub struct Whose {
    pub process: ProcessId,
    pub pid: u32,
    /// Number of execs of the process: a title that was requested before an exec is that of the old
    /// program.
    pub execs: u32,
}

/// The result of reading a title.
#[derive(Debug)]
pub struct Title {
    pub whose: Whose,
    /// The title; `None` if the process has none.
    pub words: io::Result<Option<Arc<str>>>,
}

impl Titles {
    /// Starts the thread, which reads titles through `files`.
    pub fn read_by(files: Files) -> Self {
        let read = move |whose: Whose| {
            let words = command_line(whose.pid, &files);
            Some(Title { whose, words })
        };
        Self {
            reader: Aside::start("titles", "reading titles", read).ok(),
            left: TITLES_MAX,
            outstanding: 0,
        }
    }

    /// Begins a turn.
    pub fn begin_turn(&mut self) {
        self.left = TITLES_MAX;
    }

    /// Requests the title of a process of a user; returns false if too many requests wait.
    pub fn ask(&mut self, whose: Whose, user: u32) -> bool {
        let reader = self.reader.as_ref();
        let is_asked = reader.is_some_and(|reader| reader.ask(user, whose));
        self.outstanding += usize::from(is_asked);
        is_asked
    }

    /// Requests the title of a process once more; returns false if there were enough such requests
    /// in this turn.
    pub fn ask_again(&mut self, whose: Whose, user: u32) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        self.ask(whose, user)
    }

    /// Returns the next title that has arrived.
    pub fn next(&mut self) -> Option<Title> {
        let next = self.reader.as_ref()?.answer()?;
        self.outstanding = self.outstanding.saturating_sub(1);
        Some(next)
    }

    /// Returns the number of titles that were requested and have not arrived.
    #[cfg(test)]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}
