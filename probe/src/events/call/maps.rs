//! Maps that are shared with the programs of calls.

use super::point::Points;
use super::programs::Programs;
use super::reading::{self, Reading, Texts};
use crate::plain::Plain;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::util::nr_cpus;
use probe_ebpf::calls::{NumberKey, Orders, PROBES_MAX, Tally, TextKey};
use std::io;

// SAFETY: structures of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Orders> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Tally> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<NumberKey> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<TextKey> {}

/// The programs of calls, and their maps.
pub struct CallMaps {
    /// The programs that run at each hit.
    pub programs: Programs,
    /// The programs for tracepoints of the kernel.
    pub(crate) points: Points,
    /// What to do for each probe, by its number.
    pub orders: Array<MapData, Plain<Orders>>,
    /// The counts of each probe, by its number.
    pub tallies: PerCpuArray<MapData, Plain<Tally>>,
    /// How often each number was read.
    pub numbers: HashMap<MapData, Plain<NumberKey>, u64>,
    /// How often each text was read.
    pub texts: HashMap<MapData, Plain<TextKey>, u64>,
    /// How many probes each number has had.
    pub generations: [u32; PROBES_MAX],
}

impl CallMaps {
    /// Prepares a number for a new probe: removes everything of earlier probes.
    pub fn begin(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        let cpus = nr_cpus().map_err(|(_, error)| error)?;
        let nothing = PerCpuValues::try_from(vec![Plain(Tally::ZERO); cpus])?;
        let set = self.tallies.set(u32::from(number), nothing, 0);
        set.map_err(io_error)?;
        let probe = u32::from(number);
        // Remains of calls whose beginning an earlier probe of this number has seen are recognized
        // by its generation.
        self.generations[usize::from(number) % PROBES_MAX] += 1;
        forget(&mut self.numbers, |key| key.0.probe == probe);
        forget(&mut self.texts, |key| key.0.probe == probe);
        self.set_orders(number, orders)
    }

    /// Writes what the programs have to do for a probe.
    pub fn set_orders(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        let generation = self.generations[usize::from(number) % PROBES_MAX];
        let orders = Orders {
            generation: u64::from(number) | u64::from(generation) << 8,
            ..*orders
        };
        let set = self.orders.set(u32::from(number), Plain(orders), 0);
        set.map_err(io_error)
    }

    /// Sums the counts of a probe over all CPUs.
    pub fn read(&self, number: u8) -> io::Result<Reading> {
        let tallies = self.tallies.get(&u32::from(number), 0).map_err(io_error)?;
        Ok(Reading::of(tallies.iter().map(|tally| &tally.0)))
    }

    /// Reads the values of a probe.
    pub fn texts(&mut self, number: u8) -> Texts {
        let probe = u32::from(number);
        let mut all = Texts::default();
        let numbers = self
            .numbers
            .iter()
            .filter_map(Result::ok)
            .filter(|(key, _)| key.0.probe == probe);
        all.numbers
            .extend(numbers.map(|(key, count)| reading::Number {
                slot: key.0.slot as usize,
                number: key.0.number,
                count,
            }));
        let texts = self
            .texts
            .iter()
            .filter_map(Result::ok)
            .filter(|(key, _)| key.0.probe == probe);
        all.texts
            .extend(texts.map(|(key, count)| reading::Text::of(&key.0, count)));
        all
    }
}

fn forget<K: aya::Pod>(map: &mut HashMap<MapData, K, u64>, is_gone: impl Fn(&K) -> bool) {
    let keys: Vec<K> = map.keys().filter_map(Result::ok).filter(is_gone).collect();
    for key in keys {
        // The entry may have been removed already.
        let _ = map.remove(&key);
    }
}

fn io_error(error: MapError) -> io::Error {
    io::Error::other(error.to_string())
}
