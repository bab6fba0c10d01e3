//! Stacks and frames that a day's files have already: each is written once a day.

use crate::window::{Frame, Stack};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// The most stacks and frames that are remembered: some 20 MB. Beyond it all are written once more.
const NUMBERS_MAX: usize = 1_000_000;

/// What is in the files of a day that this process has written. A process that has just started knows of none, and
/// writes all of it once more.
#[derive(Debug, Default)]
pub struct Known {
    date: String,
    stacks: HashSet<u64>,
    /// With how many names each frame is there.
    frames: HashMap<u64, usize>,
    files: Vec<PathBuf>,
}

impl Known {
    /// Forgets everything if another day begins, if one of the files was removed, or if it is too much.
    pub fn begin(&mut self, date: &str) {
        let is_there = self.files.iter().all(|it| it.exists());
        let is_long = self.stacks.len() + self.frames.len() > NUMBERS_MAX;
        if self.date != date || !is_there || is_long {
            *self = Self {
                date: date.into(),
                ..Self::default()
            };
        }
    }

    /// Whether the files have the stack.
    pub fn has_stack(&self, stack: &Stack) -> bool {
        self.stacks.contains(&stack.id)
    }

    /// Whether the files have the frame, with no fewer names.
    pub fn has_frame(&self, frame: &Frame) -> bool {
        let known = self.frames.get(&frame.id);
        known.is_some_and(|it| *it >= frame.functions.len())
    }

    /// Remembers what is in files that are written.
    pub fn add<'a>(
        &mut self,
        stacks: impl Iterator<Item = &'a Stack>,
        frames: impl Iterator<Item = &'a Frame>,
        files: [PathBuf; 2],
    ) {
        self.stacks.extend(stacks.map(|it| it.id));
        for frame in frames {
            let names = self.frames.entry(frame.id).or_default();
            *names = (*names).max(frame.functions.len());
        }
        self.files
            .extend(files.into_iter().filter(|it| it.exists()));
    }
}
