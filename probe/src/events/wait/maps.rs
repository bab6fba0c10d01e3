//! What the programs of waits share with us.

use super::record::WaitCounters;
use super::threads::Threads;
use crate::error::Error;
use crate::plain::Plain;
use aya::maps::{Array, MapData, PerCpuArray, RingBuf};
use aya::programs::ProgramFd;
use probe_ebpf::interrupts::CpuPlaces;
use probe_ebpf::waits::Orders;

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Orders> {}

/// The maps.
pub struct WaitMaps {
    /// What is known of each thread.
    pub threads: Threads,
    /// What is wanted.
    pub orders: Array<MapData, Plain<Orders>>,
    /// What was counted.
    pub counters: PerCpuArray<MapData, u64>,
    /// Where to see whether a CPU is in an interrupt,
    pub cpu_places: Array<MapData, Plain<CpuPlaces>>,
    /// as it is known.
    pub places: CpuPlaces,
    /// The program that tells of waits which are not over. `None` if the kernel refused it.
    pub open: Option<ProgramFd>,
    /// Written to for their interrupts alone.
    pub nudges: Vec<RingBuf<MapData>>,
}

impl WaitMaps {
    /// Tells the programs what is wanted of them.
    pub fn set_orders(&mut self, orders: Orders) -> Result<(), Error> {
        let set = self.orders.set(0, Plain(orders), 0);
        set.map_err(|source| Error::Map {
            name: "WAIT_ORDERS",
            source,
        })
    }

    /// Tells the programs where to see whether a CPU is in an interrupt.
    pub fn set_places(&mut self) -> Result<(), Error> {
        let set = self.cpu_places.set(0, Plain(self.places), 0);
        set.map_err(|source| Error::Map {
            name: "CPU_PLACES",
            source,
        })
    }

    /// Makes room for more.
    pub fn empty_nudges(&mut self) {
        for ring in &mut self.nudges {
            while ring.next().is_some() {}
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> WaitCounters {
        WaitCounters::of_slots(|slot| {
            let values = self.counters.get(&slot, 0);
            values.map_or(0, |values| values.iter().sum())
        })
    }
}
