//! A tracepoint that is counted: every pass counts, and one of so many gives its stack. How many
//! that are the kernel side decides, see [`probe_ebpf::happenings`].

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

/// Stacks of one CPU in a while of 134 ms from which on fewer are drawn: about 500 in a second. A
/// stack costs about 5 µs.
const STACKS: u64 = 64;

/// What the program of the tracepoint shares with us.
pub struct PointMaps {
    /// What is wanted of it.
    pub orders: Array<MapData, Plain<PointOrders>>,
    /// The program, which tells how often it was not run.
    pub program: ProgramFd,
}

/// A tracepoint whose passes are counted.
pub struct Point {
    maps: PointMaps,
    /// How often its program was not run before it was to count.
    missed_before: u64,
}

impl Point {
    /// Counts from now on.
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

    /// How often it was passed so far.
    pub fn times(&self, told: Told) -> u64 {
        let missed = recursion_misses(self.maps.program.as_fd());
        told.happened + missed.saturating_sub(self.missed_before)
    }
}
