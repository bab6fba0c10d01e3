//! Maps that are shared with the programs of waits.

use super::record::WaitCounters;
use super::threads::Threads;
use crate::drain::read_what_is_there;
use crate::error::Error;
use crate::plain::Plain;
use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::ProgramFd;
use probe_ebpf::interrupts::CpuPlaces;
use probe_ebpf::limits::NUDGES_BYTES;
use probe_ebpf::waits::Orders;

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Orders> {}

/// The maps.
pub struct WaitMaps {
    /// The state of each thread.
    pub threads: Threads,
    /// The orders for the programs.
    pub orders: Array<MapData, Plain<Orders>>,
    /// The counters.
    pub counters: PerCpuArray<MapData, u64>,
    /// How to recognize that a CPU is in an interrupt, as a map
    pub cpu_places: Array<MapData, Plain<CpuPlaces>>,
    /// and as the values to be written to it.
    pub places: CpuPlaces,
    /// The program that reports waits which are not over. `None` if the kernel refused it.
    pub open: Option<ProgramFd>,
    /// Rings that are written to only to cause interrupts.
    pub nudges: Vec<RingBuf<MapData>>,
}

impl WaitMaps {
    /// Writes the orders for the programs.
    pub fn set_orders(&mut self, orders: Orders) -> Result<(), Error> {
        let set = self.orders.set(0, Plain(orders), 0);
        set.map_err(|source| Error::Map {
            name: "WAIT_ORDERS",
            source,
        })
    }

    /// Writes for the programs how to recognize that a CPU is in an interrupt.
    pub fn set_places(&mut self) -> Result<(), Error> {
        let set = self.cpu_places.set(0, Plain(self.places), 0);
        set.map_err(|source| Error::Map {
            name: "CPU_PLACES",
            source,
        })
    }

    /// Empties the rings, so that they can be written to again.
    pub fn empty_nudges(&mut self) {
        for ring in &mut self.nudges {
            read_what_is_there(ring, NUDGES_BYTES, |_| {});
        }
    }

    /// Reads the counters.
    pub fn counters(&self) -> WaitCounters {
        WaitCounters::of_slots(|slot| {
            let values = self.counters.get(&slot, 0);
            values.map_or(0, |values| values.iter().sum())
        })
    }
}
