//! A tracepoint that is counted: every pass is counted, and one in a number of them gives its
//! stack. The kernel side decides that number, see [`probe_ebpf::happenings`].

use super::{HappeningMaps, Told};
use crate::error::Error;
use crate::events::call::recursion_misses;
use std::os::fd::AsFd as _;

/// Number of stacks of one CPU within 134 ms from which on fewer are taken: about 500 per second. A
/// stack costs about 5 µs.
const STACKS: u64 = 64;

/// A tracepoint whose passes are counted.
pub struct Point {
    maps: HappeningMaps,
    /// Number of times that its program was not run before counting began.
    missed_before: u64,
}

impl Point {
    /// Begins to count.
    pub fn start(mut maps: HappeningMaps) -> Result<Self, Error> {
        let missed_before = recursion_misses(maps.program.as_fd());
        maps.order_stacks(STACKS)?;
        Ok(Self {
            maps,
            missed_before,
        })
    }

    /// Number of passes so far.
    pub fn times(&self, told: Told) -> u64 {
        let missed = recursion_misses(self.maps.program.as_fd());
        told.happened + missed.saturating_sub(self.missed_before)
    }
}
