//! Counters of the kernel and the CPU, on each CPU: one event that gives samples, and a second one
//! that only counts, by which the missed ones are known.

use super::period::Period;
use super::{Counter, HappeningMaps};
use crate::cpus::{self, presence::Present};
use crate::error::Error;
use crate::features;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags};
use crate::time::now_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;

/// Target number of samples per second of one CPU of what the CPU itself counts. The kernel adjusts
/// the period to it: of cycles and the like the first ones are too many to give a sample each.
const SAMPLES_PER_SECOND: u32 = 1997;

/// Number of stacks of one CPU within 134 ms from which on only some samples, by chance, record
/// theirs: about 997 per second.
const STACKS: u64 = 134;

/// The counters of one CPU. Closing them detaches them.
struct Cpu {
    /// Runs the program.
    sampled: PerfEvent,
    /// Only counts.
    counted: PerfEvent,
    /// How many events give one sample; None if the kernel adjusts that.
    period: Option<Period>,
}

/// The counters of all CPUs.
pub struct Counters {
    counter: Counter,
    maps: HappeningMaps,
    cpus: BTreeMap<u32, Cpu>,
    /// The sampled CPUs; `None` for all.
    only: Option<BTreeSet<u32>>,
    /// Number of occurrences on CPUs that went offline.
    gone: u64,
}

impl Counters {
    /// Counts from now on, on all CPUs or on those in `only`, and runs the program to take samples.
    pub fn start(
        counter: Counter,
        mut maps: HappeningMaps,
        only: Option<BTreeSet<u32>>,
    ) -> Result<Self, Error> {
        maps.order_stacks(STACKS)?;
        let mut counters = Self {
            counter,
            maps,
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

    /// Adapts how many events give one sample to how often they happen.
    pub fn follow_rates(&mut self, now_ns: u64) {
        for cpu in self.cpus.values_mut() {
            let read = || cpu.counted.count().ok();
            let follow = |period: &mut Period| period.follow(now_ns, read);
            if let Some(events) = cpu.period.as_mut().and_then(follow) {
                // A CPU that went offline a moment ago gives no samples either way.
                _ = cpu.sampled.set_period(events);
            }
        }
    }

    /// Adds and removes CPUs that came online or went offline, or both. One that cannot be opened is
    /// tried again at the next call.
    pub fn follow_hotplug(&mut self, present: &Present) {
        let gone = self
            .cpus
            .extract_if(.., |number, _| !present.keeps_events_of(*number));
        self.gone += gone
            .map(|(_, cpu)| cpu.counted.count().unwrap_or_default())
            .sum::<u64>();
        for &number in &present.online {
            if !self.cpus.contains_key(&number) {
                _ = self.open(number);
            }
        }
    }

    fn open(&mut self, number: u32) -> io::Result<()> {
        if !self.only.as_ref().is_none_or(|only| only.contains(&number)) {
            return Ok(());
        }
        let counted = PerfEvent::open(attributes(self.counter), Tasks::All, number)?;
        let period = (!self.counter.is_hardware()).then(|| Period::begin(now_ns()));
        let sampled = match &period {
            Some(period) => Attributes {
                period: period.events(),
                ..attributes(self.counter)
            },
            None => Attributes {
                period: features::max_sample_rate()
                    .map_or(SAMPLES_PER_SECOND, |most| most.clamp(1, SAMPLES_PER_SECOND))
                    .into(),
                flags: flags::DISABLED | flags::FREQUENCY,
                ..attributes(self.counter)
            },
        };
        let sampled = PerfEvent::open(sampled, Tasks::All, number)?;
        sampled.attach(self.maps.program.as_fd())?;
        counted.enable()?;
        sampled.enable()?;
        let cpu = Cpu {
            sampled,
            counted,
            period,
        };
        self.cpus.insert(number, cpu);
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
