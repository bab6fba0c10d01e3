//! The events of one CPU: clocks that write registers and stacks into one ring, and the side band
//! of the same tasks in another. A CPU that is not sampled has only the side band.

use super::registers;
use super::scope::Scope;
use crate::cpus;
use crate::events::tick::Pair;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind, period_of, sample_type};
use crate::ring::Ring;
use crate::sideband::{self, SideBand};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Bytes of a stack that are requested: the maximum that the kernel allows. The kernel itself
/// leaves out what a record has no room for.
const STACK_BYTES: u32 = 65_528;

/// Time that a ring can hold: while tables were built on a busy machine, reading has paused for 0.2
/// s.
const RING_SECONDS: f64 = 0.3;
const RING_BYTES_MAX: usize = 8 << 20;
/// Minimum size of a ring, for four of the longest records. A smaller one is useless.
const RING_BYTES_MIN: usize = 256 << 10;

/// Maximum samples per second of which each wakes the sampler: this costs a hundredth of a CPU.
const WAKEUPS_MAX: u64 = 2000;

/// Size of the side band's ring for single tasks, which map less than a whole machine.
const SIDEBAND_BYTES_OF_TASKS: usize = 128 << 10;

/// What this kernel offers with the rights of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Whether it offers ticks in the kernel, and the frames there.
    pub kernel: bool,
    /// Whether it offers the control group of each sample.
    pub cgroup: bool,
}

/// Rings and events of one CPU. Closing them detaches them.
#[derive(Debug)]
pub struct Cpu {
    number: u32,
    sampled: Option<Sampled>,
    sideband: SideBand,
    joined: Vec<PerfEvent>,
}

/// The clocks of one CPU, and the ring that all of them write to.
#[derive(Debug)]
pub struct Sampled {
    ring: Ring,
    /// The clocks of the first tasks of the scope; the first of these owns the ring.
    first: Pair,
    /// The clocks of the other threads.
    joined: Vec<Pair>,
}

impl Cpu {
    /// Opens the events of a CPU: the side band first, so that no process is missed. Without a rate
    /// there is only the side band.
    pub fn open(
        number: u32,
        scope: &Scope,
        rate_hz: Option<u32>,
        offer: Offer,
    ) -> io::Result<Self> {
        let first = scope.first_tasks()?;
        let (band_of, band_bytes) = match first {
            Tasks::One(_) => (first, SIDEBAND_BYTES_OF_TASKS),
            // The side band of a control group alone would miss what a task maps before it enters
            // the group.
            Tasks::All | Tasks::Of(_) => (Tasks::All, sideband::RING_BYTES),
        };
        let sideband = SideBand::open(band_of, number, band_bytes)?;
        let sampled = match rate_hz {
            Some(rate_hz) => {
                let mut sampled = Sampled::open(first, number, rate_hz, offer)?;
                sampled.first.enable()?;
                Some(sampled)
            }
            None => None,
        };
        let mut cpu = Self {
            number,
            sampled,
            sideband,
            joined: Vec::new(),
        };
        if let (Scope::Threads(tids), Tasks::One(opened)) = (scope, first) {
            for &tid in tids.iter().filter(|&&tid| tid != opened) {
                match cpu.join(tid, rate_hz, offer) {
                    // The thread has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    result => result?,
                }
            }
        }
        Ok(cpu)
    }

    /// Adds another thread, which writes into the same rings.
    fn join(&mut self, tid: u32, rate_hz: Option<u32>, offer: Offer) -> io::Result<()> {
        let band = self.sideband.join(Tasks::One(tid), self.number)?;
        self.joined.push(band);
        if let Some((sampled, rate_hz)) = self.sampled.as_mut().zip(rate_hz) {
            let ring_of = sampled.owner();
            let mut pair = Pair::open(rate_hz, |period| {
                let clock = open_clock(Tasks::One(tid), self.number, period, offer)?;
                clock.write_to_ring_of(ring_of)?;
                Ok(clock)
            })?;
            pair.enable()?;
            sampled.joined.push(pair);
        }
        Ok(())
    }

    /// Opens clocks of another rate for everything that one pair can watch, with a ring of suitable
    /// size. They do not tick yet.
    pub fn prepare(&self, scope: &Scope, rate_hz: u32, offer: Offer) -> io::Result<Sampled> {
        Sampled::open(scope.first_tasks()?, self.number, rate_hz, offer)
    }

    /// Replaces the clocks; returns the ring of the previous ones, which has to be read for the
    /// last time.
    pub fn go_on_with(&mut self, mut next: Sampled) -> io::Result<Option<Ring>> {
        // A mapped ring keeps its clock running even when the descriptor is closed.
        if let Some(before) = &self.sampled {
            before.pairs().try_for_each(Pair::disable)?;
        }
        if let Err(error) = next.first.enable() {
            if let Some(before) = &mut self.sampled {
                before.pairs_mut().try_for_each(Pair::enable)?;
            }
            return Err(error);
        }
        Ok(self.sampled.replace(next).map(|before| before.ring))
    }

    /// Returns the clocks that can be restarted: those of all tasks. For single threads it is
    /// unknown how long their clocks have ticked, and clocks that a thread inherited have no
    /// descriptor: there each thread keeps a rhythm of its own on each CPU.
    pub fn turning(&mut self, scope: &Scope) -> Option<&mut Pair> {
        match scope {
            Scope::Everybody => self.sampled.as_mut().map(|sampled| &mut sampled.first),
            Scope::Cgroup(_) | Scope::Threads(_) => None,
        }
    }

    /// Whether there are clocks, and not only the side band.
    pub fn is_sampled(&self) -> bool {
        self.sampled.is_some()
    }

    /// Returns the number of the CPU.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the ring of samples; `None` if the CPU is not sampled.
    pub fn samples(&mut self) -> Option<&mut Ring> {
        self.sampled.as_mut().map(|sampled| &mut sampled.ring)
    }

    /// Returns the side band: what its tasks map, and when they begin and end.
    pub fn sideband(&mut self) -> &mut SideBand {
        &mut self.sideband
    }

    /// Iterates over descriptors that become readable when a ring is half full.
    pub fn buffers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let rings = self.sampled.iter().map(Sampled::owner);
        rings.chain([self.sideband.as_fd()])
    }
}

impl Sampled {
    /// Opens the clocks, which do not tick yet.
    fn open(tasks: Tasks<'_>, cpu: u32, rate_hz: u32, offer: Offer) -> io::Result<Self> {
        let first = Pair::open(rate_hz, |period| open_clock(tasks, cpu, period, offer))?;
        let [owner, other] = first.clocks();
        // The ring is mapped before the other clock writes to it: an event without a ring cannot be
        // written to.
        let ring = map_ring(owner.as_fd(), rate_hz)?;
        other.write_to_ring_of(owner.as_fd())?;
        Ok(Self {
            ring,
            first,
            joined: Vec::new(),
        })
    }

    /// Returns the clock that owns the ring.
    fn owner(&self) -> BorrowedFd<'_> {
        self.first.clocks()[0].as_fd()
    }

    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        std::iter::once(&self.first).chain(&self.joined)
    }

    fn pairs_mut(&mut self) -> impl Iterator<Item = &mut Pair> {
        std::iter::once(&mut self.first).chain(&mut self.joined)
    }
}

/// Finds out what the kernel offers for these tasks: as much as it does not refuse.
pub fn probe(scope: &Scope, cpu: u32) -> io::Result<Offer> {
    let tasks = scope.first_tasks()?;
    let offers = [(true, true), (true, false), (false, true), (false, false)];
    let mut refused = io::Error::from_raw_os_error(libc::EACCES);
    for (kernel, cgroup) in offers {
        let offer = Offer { kernel, cgroup };
        match open_clock(tasks, cpu, period_of(1), offer) {
            Ok(_) => return Ok(offer),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Number of bytes after which the ring wakes the sampler. As a rule this is after each sample: the
/// sooner the thread's memory is read, the less has changed. If that would be too often, it is half
/// of the smallest ring.
fn wakeup(period: u64) -> u32 {
    let cpus = cpus::online().map_or(1, |online| online.len() as u64);
    let samples_a_second = cpus * (1_000_000_000 / period.max(1));
    if samples_a_second <= WAKEUPS_MAX {
        1
    } else {
        RING_BYTES_MIN as u32 / 2
    }
}

fn open_clock(tasks: Tasks<'_>, cpu: u32, period: u64, offer: Offer) -> io::Result<PerfEvent> {
    let mut wanted = flags::DISABLED
        | flags::EXCLUDE_IDLE
        | flags::EXCLUDE_USER_CALLCHAIN
        | flags::USE_CLOCK
        | flags::WATERMARK;
    if matches!(tasks, Tasks::One(_)) {
        wanted |= flags::INHERIT;
    }
    if !offer.kernel {
        wanted |= flags::EXCLUDE_KERNEL;
    }
    let mut fields = sample_type::TID
        | sample_type::TIME
        | sample_type::CPU
        | sample_type::CALLCHAIN
        | sample_type::USER_REGISTERS
        | sample_type::USER_STACK;
    if offer.cgroup {
        fields |= sample_type::CGROUP;
    }
    let attributes = Attributes {
        kind: kind::SOFTWARE,
        config: kind::SOFTWARE_CPU_CLOCK,
        period,
        sample_type: fields,
        flags: wanted,
        wakeup: wakeup(period),
        user_registers: registers::MASK,
        user_stack: STACK_BYTES,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    PerfEvent::open(attributes, tasks, cpu)
}

/// Maps a ring of the right size, or the largest one that may be locked.
fn map_ring(clock: BorrowedFd<'_>, rate_hz: u32) -> io::Result<Ring> {
    let wanted = f64::from(rate_hz) * f64::from(STACK_BYTES) * RING_SECONDS;
    let wanted = (wanted as usize).next_power_of_two();
    let mut bytes = wanted.clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    loop {
        match Ring::map(clock, bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && bytes > RING_BYTES_MIN => {
                bytes /= 2;
            }
            result => return result,
        }
    }
}
