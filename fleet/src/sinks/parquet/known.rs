//! Stacks and frames that a day's files already have: each is written once a day.

use crate::window::{Frame, Stack};
use foldhash::{HashMap, HashSet};
use std::path::PathBuf;

/// Maximum number of remembered stacks and frames: some 20 MB. With more, all are written once
/// more.
const NUMBERS_MAX: usize = 1_000_000;

/// What this process has written to the files of a day. A process that has just started remembers
/// nothing, and writes everything once more.
#[derive(Debug, Default)]
pub struct Known {
    date: String,
    stacks: HashSet<u64>,
    /// The number of names with which each frame was written.
    frames: HashMap<u64, usize>,
    files: Vec<PathBuf>,
}

impl Known {
    /// Forgets everything if another day begins, if one of the files was removed, or if there is
    /// too much.
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

    /// Whether the files have the frame, with at least as many names.
    pub fn has_frame(&self, frame: &Frame) -> bool {
        let known = self.frames.get(&frame.id);
        known.is_some_and(|it| *it >= frame.functions.len())
    }

    /// Adds what was written to files, of which those are named that may disappear.
    pub fn add<'a>(
        &mut self,
        stacks: impl Iterator<Item = &'a Stack>,
        frames: impl Iterator<Item = &'a Frame>,
        files: Vec<PathBuf>,
    ) {
        self.stacks.extend(stacks.map(|it| it.id));
        for frame in frames {
            let names = self.frames.entry(frame.id).or_default();
            *names = (*names).max(frame.functions.len());
        }
        self.files.extend(files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Function, Kind};

    #[test]
    fn a_frame_with_more_names_than_the_files_have_is_written_again() {
        let frame = |names: &[&str]| Frame {
            id: 7,
            kind: Kind::Kernel,
            module: "[kernel]".into(),
            path: "".into(),
            build_id: [].into(),
            address: 0,
            functions: names
                .iter()
                .map(|name| Function {
                    name: (*name).into(),
                    file: "".into(),
                    line: 0,
                })
                .collect(),
        };
        let mut known = Known::default();
        known.add([].iter(), [frame(&["schedule"])].iter(), Vec::new());
        assert!(known.has_frame(&frame(&["schedule"])));
        assert!(!known.has_frame(&frame(&["prepare_to_switch", "schedule"])));
    }
}
