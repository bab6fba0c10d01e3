//! What the numbers of the baseline lack: whoever compares has to know it of both
//! sides.

use super::{Baseline, Snapshot};
use profile::{Completeness, Selection, Window};

/// How many samples the baseline has, and what is missing of them.
#[derive(Debug)]
pub struct BaselineLacks {
    /// Those in its window that the filter keeps.
    pub samples: u64,
    /// The time that it covers.
    pub window: Window,
    /// Its clock is the one of what is compared with it.
    pub is_of_here: bool,
    /// Samples of that time that found no room.
    pub lost: u64,
    /// How many of its stacks are whole, and how many of its frames have names.
    pub completeness: Completeness,
}

impl BaselineLacks {
    /// What the part of the baseline that `before` counts lacks; `now` knows when samples were
    /// lost here.
    pub fn new(baseline: &Baseline, before: &Selection, now: &Snapshot) -> Self {
        let window = before.window();
        let lost = match &now.run.losses {
            Some(losses) if baseline.is_of_here() => losses.between(window.start_ns, window.end_ns),
            _ => before.view().info().lost,
        };
        BaselineLacks {
            samples: before.samples(),
            window,
            is_of_here: baseline.is_of_here(),
            lost,
            completeness: before.completeness(),
        }
    }
}
