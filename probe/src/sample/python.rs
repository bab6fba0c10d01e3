//! Functions of Python in samples: their names, and what is missing of them.

use super::Frame;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use symbolize::Reason;
use symbolize::python::Lack;

/// Lines with a number; what comes then is one frame without a name.
const NAMES_MAX: usize = 1 << 20;

/// A line of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PythonName {
    /// `json.decoder.JSONDecoder.decode`; safe to print.
    pub function: Arc<str>,
    /// The file as the interpreter knows it; safe to print.
    pub file: Arc<str>,
    /// 0 where an instruction is of no line.
    pub line: u32,
}

/// What the numbers of Python frames stand for: by [`Frame::address`].
#[derive(Debug, Default)]
pub struct PythonNames(RwLock<Vec<Result<PythonName, Reason>>>);

impl PythonNames {
    /// What a number stands for, or why that could not be read.
    pub fn get(&self, address: u64) -> Result<PythonName, Reason> {
        let names = self.0.read().expect("nobody panics with it");
        let name = usize::try_from(address).ok().and_then(|at| names.get(at));
        name.cloned().unwrap_or(Err(Reason::CodeGone))
    }

    /// The number of one more; `None` if there are too many.
    pub(crate) fn add(&self, name: Result<PythonName, Reason>) -> Option<u64> {
        let mut names = self.0.write().expect("nobody panics with it");
        if names.len() >= NAMES_MAX {
            return None;
        }
        names.push(name);
        Some(names.len() as u64 - 1)
    }
}

/// What is known of the Python frames of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonStack {
    /// The frames that one call of the interpreter's loop runs, innermost first, for each
    /// call, innermost first.
    pub groups: Vec<Vec<Frame>>,
    /// Why some or all are missing.
    pub missing: Option<Missing>,
    /// The process runs Python at all.
    pub is_python: bool,
    /// They were read after the sample: the first of the native user frames whose call had not
    /// returned by then. `None` if they were read at the same moment.
    pub same_frames_from: Option<usize>,
    /// It ran or waited for a CPU when they were read.
    pub is_running: bool,
}

/// Why the Python frames of a sample are missing, or not all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// It is of a wait that is not over, whose stack is not read by the kernel side.
    Waits,
    /// The process was not known to run Python yet.
    Early,
    /// The frames of its process are not walked: see [`PythonStats::lacks`].
    NotWalked,
    /// Where the thread's frames are was not known yet.
    NoThread,
    /// Some could not be read.
    Unreadable,
    /// There are more than are kept.
    TooDeep,
    /// They do not fit the native frames.
    Mismatch,
    /// Those of the interpreter that called this one are not walked.
    Nested,
    /// They were read after the sample, and the thread had gone on.
    Moved,
}

/// How Python's frames were found: totals of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonStats {
    /// Processes whose frames are walked now.
    pub processes: usize,
    /// Samples with all of their Python frames.
    pub whole: u64,
    /// Those of `whole` whose innermost functions are those of a moment later, without what was
    /// native inside of them.
    pub later: u64,
    /// Samples that lack some, by the reason.
    pub missing: BTreeMap<Missing, u64>,
    /// Samples on a CPU of which it is known whether the thread had the global lock (the GIL).
    pub lock_known: u64,
    /// Those of `lock_known` whose thread had it.
    pub lock_held: u64,
    /// Why the frames of processes are not walked, and of how many.
    pub lacks: Vec<(Lack, usize)>,
}

impl PythonStats {
    /// Samples that lack Python frames, for whatever reason.
    pub fn lacking(&self) -> u64 {
        self.missing.values().sum()
    }

    pub(crate) fn set_lacks(&mut self, lacks: impl Iterator<Item = Lack>) {
        self.lacks.clear();
        for lack in lacks {
            match self.lacks.iter_mut().find(|(known, _)| *known == lack) {
                Some((_, processes)) => *processes += 1,
                None => self.lacks.push((lack, 1)),
            }
        }
    }
}
