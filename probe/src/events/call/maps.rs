//! What the programs of calls share with us.

use super::point::Points;
use super::reading::{self, Reading, Texts};
use crate::plain::Plain;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::programs::ProgramFd;
use aya::util::nr_cpus;
use probe_ebpf::calls::{NumberKey, Orders, StartKey, Tally, TextKey};
use std::io;

// SAFETY: structures of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Orders> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Tally> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<StartKey> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<NumberKey> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<TextKey> {}

/// The programs of calls, and their maps.
pub struct CallMaps {
    /// The program for the beginning of a call.
    pub begins: ProgramFd,
    /// The program for its end.
    pub ends: ProgramFd,
    /// The programs for tracepoints of the kernel.
    pub(crate) points: Points,
    /// What to do for each probe, by its number.
    pub orders: Array<MapData, Plain<Orders>>,
    /// What was counted of each probe, by its number.
    pub tallies: PerCpuArray<MapData, Plain<Tally>>,
    /// When the calls began that are under way.
    pub starts: HashMap<MapData, Plain<StartKey>, u64>,
    /// How often each number was read.
    pub numbers: HashMap<MapData, Plain<NumberKey>, u64>,
    /// How often each text was read.
    pub texts: HashMap<MapData, Plain<TextKey>, u64>,
}

impl CallMaps {
    /// The programs for the beginning and for the end of a call.
    pub fn programs(&self) -> (&ProgramFd, &ProgramFd) {
        (&self.begins, &self.ends)
    }

    /// Makes a number ready for a new probe: nothing is left of an earlier one.
    pub fn begin(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        let cpus = nr_cpus().map_err(|(_, error)| error)?;
        let nothing = PerCpuValues::try_from(vec![Plain(Tally::ZERO); cpus])?;
        let set = self.tallies.set(u32::from(number), nothing, 0);
        set.map_err(io_error)?;
        let probe = u32::from(number);
        forget(&mut self.starts, |key| key.0.probe == probe);
        forget(&mut self.numbers, |key| key.0.probe == probe);
        forget(&mut self.texts, |key| key.0.probe == probe);
        self.set_orders(number, orders)
    }

    /// Tells the programs what to do for a probe.
    pub fn set_orders(&mut self, number: u8, orders: &Orders) -> io::Result<()> {
        let set = self.orders.set(u32::from(number), Plain(*orders), 0);
        set.map_err(io_error)
    }

    /// What all CPUs together have counted of a probe.
    pub fn read(&self, number: u8) -> io::Result<Reading> {
        let tallies = self.tallies.get(&u32::from(number), 0).map_err(io_error)?;
        Ok(Reading::of(tallies.iter().map(|tally| &tally.0)))
    }

    /// What was read of its values.
    pub fn texts(&mut self, number: u8) -> Texts {
        let probe = u32::from(number);
        let mut all = Texts::default();
        let numbers = self.numbers.iter().filter_map(Result::ok);
        let numbers = numbers.filter(|(key, _)| key.0.probe == probe);
        all.numbers
            .extend(numbers.map(|(key, count)| reading::Number {
                slot: key.0.slot as usize,
                number: key.0.number,
                count,
            }));
        let texts = self.texts.iter().filter_map(Result::ok);
        let texts = texts.filter(|(key, _)| key.0.probe == probe);
        all.texts
            .extend(texts.map(|(key, count)| reading::Text::of(&key.0, count)));
        all
    }
}

fn forget<K: aya::Pod>(map: &mut HashMap<MapData, K, u64>, is_gone: impl Fn(&K) -> bool) {
    let keys: Vec<K> = map.keys().filter_map(Result::ok).filter(is_gone).collect();
    for key in keys {
        // It may have left by itself.
        let _ = map.remove(&key);
    }
}

fn io_error(error: MapError) -> io::Error {
    io::Error::other(error.to_string())
}
