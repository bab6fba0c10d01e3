//! Counters of the kernel and the CPU, on each CPU: one event that gives samples, and a second one
//! that only counts, by which the missed ones are known.

use super::Counter;
use crate::cpus;
use crate::error::Error;
use crate::features;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags};
use aya::programs::ProgramFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;

/// Target number of samples per second of one CPU. The kernel adjusts the period to it, and gives a
/// sample of every occurrence if there are few. A prime, so that it is not in step with anything.
const SAMPLES_PER_SECOND: u32 = 997;

/// The counters of one CPU. Closing them detaches them.
struct Cpu {
    /// Runs the program.
    sampled: PerfEvent,
    /// Only counts.
    counted: PerfEvent,
}

/// The counters of all CPUs.
pub struct Counters {
    counter: Counter,
    program: ProgramFd,
    cpus: BTreeMap<u32, Cpu>,
    /// The sampled CPUs; `None` for all.
    only: Option<BTreeSet<u32>>,
    /// Number of occurrences on CPUs that went offline.
    gone: u64,
}

impl Counters {
    /// Counts from now on, on all CPUs or on those in `only`, and runs `program` to take samples.
    pub fn start(
        counter: Counter,
        program: ProgramFd,
        only: Option<BTreeSet<u32>>,
    ) -> Result<Self, Error> {
        let mut counters = Self {
            counter,
            program,
            cpus: BTreeMap::new(),
            only,
            gone: 0,
        };
        let refused = |source| Error::Happening {
            name: counter.name().into(),
            source,
        };
        for cpu in cpus::online().map_err(Error::Cpus)? {
            match counters.open(cpu) {
                // The CPU went offline after the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                result => result.map_err(refused)?,
            }
        }
        Ok(counters)
    }

    /// Number of occurrences so far.
    pub fn times(&self) -> u64 {
        let counted = self.cpus.values();
        let counted = counted.map(|cpu| cpu.counted.count().unwrap_or_default());
        self.gone + counted.sum::<u64>()
    }

    /// Adds and removes CPUs that came online or went offline. One that cannot be opened is tried
    /// again at the next call.
    pub fn follow_hotplug(&mut self) {
        let Ok(online) = cpus::online() else {
            return;
        };
        let gone = self
            .cpus
            .extract_if(.., |number, _| !online.contains(number));
        self.gone += gone
            .map(|(_, cpu)| cpu.counted.count().unwrap_or_default())
            .sum::<u64>();
        for number in online {
            if !self.cpus.contains_key(&number) {
                _ = self.open(number);
            }
        }
    }

    fn open(&mut self, number: u32) -> io::Result<()> {
        if !self.only.as_ref().is_none_or(|only| only.contains(&number)) {
            return Ok(());
        }
        let rate_hz = features::max_sample_rate()
            .map_or(SAMPLES_PER_SECOND, |most| most.clamp(1, SAMPLES_PER_SECOND));
        let counted = PerfEvent::open(attributes(self.counter), Tasks::All, number)?;
        let sampled = Attributes {
            period: rate_hz.into(),
            flags: flags::DISABLED | flags::FREQUENCY,
            ..attributes(self.counter)
        };
        let sampled = PerfEvent::open(sampled, Tasks::All, number)?;
        sampled.attach(self.program.as_fd())?;
        counted.enable()?;
        sampled.enable()?;
        self.cpus.insert(number, Cpu { sampled, counted });
        Ok(())
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        // No program runs while the other one is closed.
        _ = self.sampled.disable();
    }
}

fn attributes(counter: Counter) -> Attributes {
    Attributes {
        kind: counter.0.kind,
        config: counter.0.config,
        flags: flags::DISABLED,
        ..Attributes::default()
    }
}

/// Opens a counter on one CPU for all processes, and closes it.
pub fn try_open(counter: Counter) -> io::Result<()> {
    let first = cpus::online()?.first().copied().unwrap_or_default();
    let attributes = Attributes {
        period: 1,
        flags: flags::DISABLED | flags::FREQUENCY,
        ..attributes(counter)
    };
    PerfEvent::open(attributes, Tasks::All, first).map(drop)
}
