//! What the kernel and the CPU count, on each CPU: one event that gives samples, and one beside
//! it that only counts, and so tells what the first one missed.

use super::Counter;
use crate::cpus;
use crate::error::Error;
use crate::features;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags};
use aya::programs::ProgramFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;

/// Samples in a second of one CPU. The kernel sets the period so that there are about as many,
/// and gives every one where it happens seldom. A prime, so that it keeps pace with nothing.
const SAMPLES_PER_SECOND: u32 = 997;

/// What is counted on one CPU. Closing it detaches it.
struct Cpu {
    /// Runs the program.
    sampled: PerfEvent,
    /// Counts, and nothing else.
    counted: PerfEvent,
}

/// What is counted on all CPUs.
pub struct Counters {
    counter: Counter,
    program: ProgramFd,
    cpus: BTreeMap<u32, Cpu>,
    /// Those that are sampled; nothing: all.
    only: Option<BTreeSet<u32>>,
    /// How often it happened on CPUs that are gone.
    gone: u64,
}

impl Counters {
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
                // It went offline between our reading the list and now.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                result => result.map_err(refused)?,
            }
        }
        Ok(counters)
    }

    /// How often it happened so far.
    pub fn times(&self) -> u64 {
        let counted = self.cpus.values();
        let counted = counted.map(|cpu| cpu.counted.count().unwrap_or_default());
        self.gone + counted.sum::<u64>()
    }

    /// Follows CPUs that came or went. One that cannot be opened is tried again at the next call.
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

/// Opens a counter on one CPU for everybody, and closes it.
pub fn try_open(counter: Counter) -> io::Result<()> {
    let first = cpus::online()?.first().copied().unwrap_or_default();
    let attributes = Attributes {
        period: 1,
        flags: flags::DISABLED | flags::FREQUENCY,
        ..attributes(counter)
    };
    PerfEvent::open(attributes, Tasks::All, first).map(drop)
}
