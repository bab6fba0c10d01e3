//! The *heat map*. Columns are seconds; rows are parts of a second, CPUs, or threads.

/// The rows of a heat map.
mod rows;

pub use rows::{HeatBy, HeatRow, HeatRows};

use super::selection::Selection;
use crate::FrameId;
use crate::time::STAMPS_PER_SECOND;

/// Samples by second and row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeatMap {
    /// Second of the first column, on the clock of the samples.
    pub first_second: u64,
    /// Number of rows of each column.
    pub rows: usize,
    /// Samples per second of a busy CPU, as counted in all cells.
    pub rate_hz: u32,
    /// Sample counts, column after column, `rows` cells each.
    pub cells: Vec<u64>,
}

impl HeatMap {
    /// Number of seconds.
    pub fn columns(&self) -> usize {
        self.cells.len() / self.rows.max(1)
    }

    /// Samples in one cell. Panics if there is no such column or row.
    pub fn cell(&self, column: usize, row: usize) -> u64 {
        self.cells[column * self.rows + row]
    }

    /// Samples of the fullest cell; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.cells.iter().copied().max().unwrap_or(0)
    }
}

/// Maximum number of columns of a map; the newest are kept.
const SECONDS_MAX: u64 = 24 * 3600;

impl Selection {
    /// Makes a map with these rows. If `function` is given, only samples that have it on their
    /// stack count.
    pub fn heat(&self, rows: &HeatRows, function: Option<FrameId>) -> HeatMap {
        let window = self.window();
        let last = self.view.tables.history.newest_second().unwrap_or(0);
        let last = last.min(self.stamps.last / STAMPS_PER_SECOND);
        let first = (window.start_ns / 1_000_000_000)
            .max(last.saturating_sub(SECONDS_MAX - 1))
            .min(last);
        let mut map = HeatMap {
            first_second: first,
            rows: rows.len(),
            rate_hz: self.rate_hz(),
            cells: vec![0; (last - first + 1) as usize * rows.len()],
        };
        let wanted = function.map(|frame| self.stacks_with(frame));
        self.visit(self.stamps, |sample| {
            let second = sample.stamp / STAMPS_PER_SECOND;
            let is_wanted = |stacks: &Vec<bool>| stacks[sample.stack.0 as usize];
            if second < first || !wanted.as_ref().is_none_or(is_wanted) {
                return;
            }
            let column = (second - first) as usize;
            map.cells[column * map.rows + rows.of(&sample)] += sample.weight;
        });
        map
    }

    /// Returns for each stack whether it has the function of `frame`.
    pub(super) fn stacks_with(&self, frame: FrameId) -> Vec<bool> {
        let function = self.view.function_of(frame);
        let mut found = vec![false; self.shape_of.len()];
        for entry in &self.entries {
            let mut steps = self.shape(entry.shape).iter();
            let has = steps.any(|step| super::shape::Step(*step).function() == function);
            found[entry.stack.0 as usize] = has;
        }
        found
    }
}
