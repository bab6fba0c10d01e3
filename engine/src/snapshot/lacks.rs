//! What the samples of the baseline lack: it has to be known for both sides of a comparison.

use super::{Baseline, Snapshot};
use profile::{Completeness, Selection, Window};

/// Number of samples of the baseline, and what is missing of them.
#[derive(Debug)]
pub struct BaselineLacks {
    /// Number of samples in its window that the filter keeps.
    pub samples: u64,
    /// The time that it covers.
    pub window: Window,
    /// Whether its clock is that of the other side.
    pub is_of_here: bool,
    /// Number of samples of that time that were lost.
    pub lost: u64,
    /// How many of its stacks are whole, and how many of its frames have names.
    pub completeness: Completeness,
}

impl BaselineLacks {
    /// Computes what the part of the baseline in `before` lacks; `now` has the times at which
    /// samples were lost.
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
