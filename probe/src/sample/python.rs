//! Functions of Python in samples: their names, and what is missing.

use super::Frame;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use symbolize::Reason;
use symbolize::python::Lack;

/// Maximum number of lines with a number; further ones share one frame without a name.
const NAMES_MAX: usize = 1 << 20;

/// A line of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PythonName {
    /// The qualified name, for example `json.decoder.JSONDecoder.decode`; safe to print.
    pub function: Arc<str>,
    /// The file's name in the interpreter; safe to print.
    pub file: Arc<str>,
    /// The line number; 0 if an instruction belongs to no line.
    pub line: u32,
}

/// Functions and lines of Python frames, by number: see [`Frame::address`].
#[derive(Debug, Default)]
pub struct PythonNames(RwLock<Vec<Result<PythonName, Reason>>>);

impl PythonNames {
    /// Returns the line with a number, or why it could not be read.
    pub fn get(&self, address: u64) -> Result<PythonName, Reason> {
        let names = self.0.read().expect("nobody panics with it");
        let name = usize::try_from(address).ok().and_then(|at| names.get(at));
        name.cloned().unwrap_or(Err(Reason::CodeGone))
    }

    /// Adds a line and returns its number; `None` if there are too many.
    pub(crate) fn add(&self, name: Result<PythonName, Reason>) -> Option<u64> {
        let mut names = self.0.write().expect("nobody panics with it");
        if names.len() >= NAMES_MAX {
            return None;
        }
        names.push(name);
        Some(names.len() as u64 - 1)
    }
}

/// The Python frames of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonStack {
    /// For each call of the interpreter's loop, innermost first, the frames that it runs, innermost
    /// first.
    pub groups: Vec<Vec<Frame>>,
    /// Why some or all are missing.
    pub missing: Option<Missing>,
    /// Whether the process runs Python at all.
    pub is_python: bool,
    /// If the frames were read after the sample: the first of the native user frames whose call had
    /// not returned by then. `None` if they were read at the same moment.
    pub same_frames_from: Option<usize>,
    /// Whether the thread ran or waited for a CPU when they were read.
    pub is_running: bool,
}

/// Why Python frames of a sample are missing, or incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// The sample is of a wait that is not over, whose stack the kernel side does not read.
    Waits,
    /// The process was not known to run Python yet.
    Early,
    /// The frames of its process are not walked: see [`PythonStats::lacks`].
    NotWalked,
    /// The position of the thread's frames was not known yet.
    NoThread,
    /// Some could not be read.
    Unreadable,
    /// There are more frames than are kept.
    TooDeep,
    /// They do not match the native frames.
    Mismatch,
    /// The frames of the interpreter that called this one are not walked.
    Nested,
    /// They were read after the sample, and the thread had continued.
    Moved,
}

/// Statistics on finding Python's frames: totals of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonStats {
    /// Number of processes whose frames are walked now.
    pub processes: usize,
    /// Samples with all of their Python frames.
    pub whole: u64,
    /// Samples in `whole` whose innermost functions are those of a moment later, without the native
    /// frames inside of them.
    pub later: u64,
    /// Samples with missing frames, by reason.
    pub missing: BTreeMap<Missing, u64>,
    /// Samples on a CPU for which it is known whether the thread had the global lock (the GIL).
    pub lock_known: u64,
    /// Samples in `lock_known` whose thread had the lock.
    pub lock_held: u64,
    /// Why the frames of processes are not walked, and for how many.
    pub lacks: Vec<(Lack, usize)>,
}

impl PythonStats {
    /// Returns the number of samples that lack Python frames, for any reason.
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
