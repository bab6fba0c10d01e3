//! What the numbers of the baseline lack: whoever compares has to know it of both
//! sides.

use super::{Baseline, Snapshot};
use profile::{Completeness, Selection, Window};

#[derive(Debug)]
pub struct BaselineLacks {
    pub samples: u64,
    pub window: Window,
    /// Its clock is the one of what is compared with it.
    pub is_of_here: bool,
    pub lost: u64,
    pub completeness: Completeness,
}

impl BaselineLacks {
    /// Of what `before` counts; `now` knows when samples were lost here.
    pub fn new(baseline: &Baseline, before: &Selection, now: &Snapshot) -> Self {
        let window = before.window();
        let lost = match &now.losses {
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
