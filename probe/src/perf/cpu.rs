//! What runs on one CPU: clocks that write registers and stacks into one ring,
//! and the side band of the same tasks in another. A CPU that is not to be sampled
//! has only that.

use super::registers;
use super::scope::Scope;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind, period_of, sample_type};
use crate::ring::Ring;
use crate::sideband::{self, SideBand};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Bytes of a stack that are asked for: as many as the kernel allows. What a
/// record has no room for it leaves out itself.
const STACK_BYTES: u32 = 65_528;

/// How long a ring holds out: while tables are built on a busy machine, reading has
/// paused for 0.2 s.
const RING_SECONDS: f64 = 0.3;
const RING_BYTES_MAX: usize = 8 << 20;
/// Four of the longest records. Below, there is no point.
const RING_BYTES_MIN: usize = 256 << 10;

/// Of single tasks; they map less than a machine.
const SIDEBAND_BYTES_OF_TASKS: usize = 128 << 10;

/// What this kernel can be asked for, by these rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Ticks in the kernel, and the frames there.
    pub kernel: bool,
    /// The control group of each sample.
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

/// The clocks of one CPU, and where they write.
#[derive(Debug)]
struct Sampled {
    ring: Ring,
    /// The first owns the ring.
    clocks: Vec<PerfEvent>,
}

/// A clock and the ring that it writes to.
#[derive(Debug)]
pub struct Sampling {
    clock: PerfEvent,
    ring: Ring,
}

impl Cpu {
    /// Opens the side band first, so that no process is missed. Without a rate there
    /// is nothing but that.
    pub fn open(
        number: u32,
        scope: &Scope,
        rate_hz: Option<u32>,
        offer: Offer,
    ) -> io::Result<Self> {
        let first = scope.first_tasks()?;
        let (band_of, band_bytes) = match first {
            Tasks::One(_) => (first, SIDEBAND_BYTES_OF_TASKS),
            // A control group's own side band would miss what is mapped before a
            // task enters it.
            Tasks::All | Tasks::Of(_) => (Tasks::All, sideband::RING_BYTES),
        };
        let sideband = SideBand::open(band_of, number, band_bytes)?;
        let sampled = match rate_hz {
            Some(rate_hz) => Some(Sampled::begin(first, number, rate_hz, offer)?),
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
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    result => result?,
                }
            }
        }
        Ok(cpu)
    }

    /// Another thread, into the same rings.
    fn join(&mut self, tid: u32, rate_hz: Option<u32>, offer: Offer) -> io::Result<()> {
        let band = self.sideband.join(Tasks::One(tid), self.number)?;
        self.joined.push(band);
        if let Some((sampled, rate_hz)) = self.sampled.as_mut().zip(rate_hz) {
            let clock = open_clock(Tasks::One(tid), self.number, rate_hz, offer)?;
            clock.write_to_ring_of(sampled.clocks[0].as_fd())?;
            clock.enable()?;
            sampled.clocks.push(clock);
        }
        Ok(())
    }

    /// A clock of another rate for all that one clock can watch, with a ring of the
    /// size for it. It does not tick yet.
    pub fn prepare(&self, scope: &Scope, rate_hz: u32, offer: Offer) -> io::Result<Sampling> {
        let clock = open_clock(scope.first_tasks()?, self.number, rate_hz, offer)?;
        let ring = map_ring(clock.as_fd(), rate_hz)?;
        Ok(Sampling { clock, ring })
    }

    /// Goes on with another clock; gives back the ring of those before, to be read
    /// for the last time.
    pub fn go_on_with(&mut self, next: Sampling) -> io::Result<Option<Ring>> {
        let Sampling { clock, ring } = next;
        let before = self.sampled.iter().flat_map(|sampled| &sampled.clocks);
        // A ring that is mapped keeps its clock, open or not.
        before.clone().try_for_each(PerfEvent::disable)?;
        if let Err(error) = clock.enable() {
            before.clone().try_for_each(PerfEvent::enable)?;
            return Err(error);
        }
        let next = Sampled {
            ring,
            clocks: vec![clock],
        };
        Ok(self.sampled.replace(next).map(|before| before.ring))
    }

    pub fn is_sampled(&self) -> bool {
        self.sampled.is_some()
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// Nothing where it is not sampled.
    pub fn samples(&mut self) -> Option<&mut Ring> {
        self.sampled.as_mut().map(|sampled| &mut sampled.ring)
    }

    pub fn sideband(&mut self) -> &mut SideBand {
        &mut self.sideband
    }

    /// What becomes readable when a ring is half full.
    pub fn buffers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clocks = self.sampled.iter().map(|sampled| sampled.clocks[0].as_fd());
        clocks.chain([self.sideband.as_fd()])
    }
}

impl Sampled {
    fn begin(tasks: Tasks<'_>, cpu: u32, rate_hz: u32, offer: Offer) -> io::Result<Self> {
        let clock = open_clock(tasks, cpu, rate_hz, offer)?;
        let ring = map_ring(clock.as_fd(), rate_hz)?;
        clock.enable()?;
        Ok(Self {
            ring,
            clocks: vec![clock],
        })
    }
}

/// What the kernel offers for these tasks: as much as it does not refuse.
pub fn probe(scope: &Scope, cpu: u32) -> io::Result<Offer> {
    let tasks = scope.first_tasks()?;
    let offers = [(true, true), (true, false), (false, true), (false, false)];
    let mut refused = io::Error::from_raw_os_error(libc::EACCES);
    for (kernel, cgroup) in offers {
        let offer = Offer { kernel, cgroup };
        match open_clock(tasks, cpu, 1, offer) {
            Ok(_) => return Ok(offer),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn open_clock(tasks: Tasks<'_>, cpu: u32, rate_hz: u32, offer: Offer) -> io::Result<PerfEvent> {
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
        period: period_of(rate_hz),
        sample_type: fields,
        flags: wanted,
        wakeup: RING_BYTES_MIN as u32 / 2,
        user_registers: registers::MASK,
        user_stack: STACK_BYTES,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    PerfEvent::open(attributes, tasks, cpu)
}

/// As large as it should be, or as we may lock.
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
