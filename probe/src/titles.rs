//! *Titles*: the command lines of processes, which some rewrite while they run. They lie in
//! the memory of the process, which may let a reader wait, so they are read aside.

use crate::aside::Aside;
use crate::ids::ProcessId;
use crate::owner::command_line;
use std::io;
use std::sync::Arc;
use symbolize::Files;

/// Titles that are asked for in one turn of the sampler, which comes twenty times a second: a
/// read takes some 50 µs of a CPU.
const TITLES_MAX: u32 = 4;

/// Reads titles.
#[derive(Debug)]
pub struct Titles {
    /// `None` if there can be no thread: there are no titles then.
    reader: Option<Aside<Whose, Title>>,
    /// That may still be asked for in this turn, of processes that are known already.
    left: u32,
    outstanding: usize,
}

/// A program that a process runs.
#[derive(Debug, Clone, Copy)]
pub struct Whose {
    pub process: ProcessId,
    pub pid: u32,
    /// How often the process has become another program: what was asked for before that is the
    /// title of the old one.
    pub execs: u32,
}

/// What came of a title.
#[derive(Debug)]
pub struct Title {
    pub whose: Whose,
    /// `None` if it has none.
    pub words: io::Result<Option<Arc<str>>>,
}

impl Titles {
    /// Titles are read this way.
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

    /// What follows is a turn of its own.
    pub fn begin_turn(&mut self) {
        self.left = TITLES_MAX;
    }

    /// Asks for the title of a process of a user; false if too much waits.
    pub fn ask(&mut self, whose: Whose, user: u32) -> bool {
        let reader = self.reader.as_ref();
        let is_asked = reader.is_some_and(|reader| reader.ask(user, whose));
        self.outstanding += usize::from(is_asked);
        is_asked
    }

    /// Asks for the title of a process once more; false if that was done often enough in
    /// this turn.
    pub fn ask_again(&mut self, whose: Whose, user: u32) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        self.ask(whose, user)
    }

    /// The next title that has come.
    pub fn next(&mut self) -> Option<Title> {
        let next = self.reader.as_ref()?.answer()?;
        self.outstanding = self.outstanding.saturating_sub(1);
        Some(next)
    }

    /// Titles that were asked for and have not come.
    #[cfg(test)]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}
