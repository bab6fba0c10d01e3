//! A tracepoint that is counted: every pass is counted, and one in a number of them gives its
//! stack. The kernel side decides that number, see [`probe_ebpf::happenings`].

use super::Told;
use crate::error::Error;
use crate::events::call::recursion_misses;
use crate::plain::Plain;
use aya::maps::{Array, MapData};
use aya::programs::ProgramFd;
use probe_ebpf::happenings::PointOrders;
use std::os::fd::AsFd as _;

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<PointOrders> {}

/// Number of stacks of one CPU within 134 ms from which on fewer are taken: about 500 per second. A
/// stack costs about 5 µs.
const STACKS: u64 = 64;

/// Maps that are shared with the tracepoint's program.
pub struct PointMaps {
    /// The orders for the program.
    pub orders: Array<MapData, Plain<PointOrders>>,
    /// The program, which provides the number of times that it was not run.
    pub program: ProgramFd,
}

/// A tracepoint whose passes are counted.
pub struct Point {
    maps: PointMaps,
    /// Number of times that its program was not run before counting began.
    missed_before: u64,
}

impl Point {
    /// Begins to count.
    pub fn start(mut maps: PointMaps) -> Result<Self, Error> {
        let missed_before = recursion_misses(maps.program.as_fd());
        let set = maps.orders.set(0, Plain(PointOrders { stacks: STACKS }), 0);
        set.map_err(|source| Error::Map {
            name: "POINT_ORDERS",
            source,
        })?;
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
