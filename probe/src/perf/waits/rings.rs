//! The events that report switches, and their rings: one for each CPU.

use super::record::{self, Record};
use crate::perf::cpu::Offer;
use crate::perf::registers;
use crate::perf::scope::Scope;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind, sample_type};
use crate::ring::Ring;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Size of a ring: with samples a switch takes some 400 bytes, without some 100.
const RING_BYTES: usize = 1 << 20;
/// Minimum size of a ring, for users with a low limit of locked memory.
const RING_BYTES_MIN: usize = 32 << 10;
/// Size of a ring without samples.
const RING_BYTES_OF_SWITCHES: usize = 128 << 10;

/// Maximum number of kernel frames that are requested: enough for all but the deepest file systems.
const KERNEL_FRAMES: u16 = 32;

/// Switches of the threads of a scope on one CPU. Closing them detaches them.
#[derive(Debug)]
pub struct Switches {
    cpu: u32,
    ring: Ring,
    /// The first event, which owns the ring.
    first: PerfEvent,
    _joined: Vec<PerfEvent>,
}

impl Switches {
    /// Opens the events that follow the threads of a scope.
    pub fn open(cpu: u32, scope: &Scope, offer: Offer) -> io::Result<Self> {
        let tasks = scope.first_tasks()?;
        let mut bytes = if offer.kernel {
            RING_BYTES
        } else {
            RING_BYTES_OF_SWITCHES
        };
        let (first, ring) = loop {
            let first = open_event(tasks, cpu, offer, bytes)?;
            match Ring::map(first.as_fd(), bytes) {
                Ok(ring) => break (first, ring),
                Err(error)
                    if error.raw_os_error() == Some(libc::EPERM) && bytes > RING_BYTES_MIN =>
                {
                    bytes /= 2;
                }
                Err(error) => return Err(error),
            }
        };
        first.enable()?;
        let mut joined = Vec::new();
        if let (Scope::Threads(tids), Tasks::One(opened)) = (scope, tasks) {
            for &tid in tids.iter().filter(|tid| **tid != opened) {
                match join(tid, cpu, offer, bytes, &first) {
                    Ok(event) => joined.push(event),
                    // The thread has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Self {
            cpu,
            ring,
            first,
            _joined: joined,
        })
    }

    /// Returns the number of the CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Passes the records since the last call to `each`.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        self.ring.drain(|bytes| {
            if let Some(record) = record::parse(bytes) {
                each(record);
            }
        });
    }

    /// Returns a descriptor that becomes readable when the ring is half full.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.first.as_fd()
    }
}

/// Adds another thread, which writes into the same ring.
fn join(
    tid: u32,
    cpu: u32,
    offer: Offer,
    ring_bytes: usize,
    ring_of: &PerfEvent,
) -> io::Result<PerfEvent> {
    let event = open_event(Tasks::One(tid), cpu, offer, ring_bytes)?;
    event.write_to_ring_of(ring_of.as_fd())?;
    event.enable()?;
    Ok(event)
}

/// Opens an event that samples at each switch, where a thread leaves its CPU, if the kernel may be
/// sampled. If it may not, there are no samples, but still the records of switches.
fn open_event(
    tasks: Tasks<'_>,
    cpu: u32,
    offer: Offer,
    ring_bytes: usize,
) -> io::Result<PerfEvent> {
    let mut wanted = flags::DISABLED
        | flags::CONTEXT_SWITCH
        | flags::SAMPLE_ID_ALL
        | flags::EXCLUDE_USER_CALLCHAIN
        | flags::USE_CLOCK
        | flags::WATERMARK;
    if matches!(tasks, Tasks::One(_)) {
        wanted |= flags::INHERIT;
    }
    if !offer.kernel {
        wanted |= flags::EXCLUDE_KERNEL;
    }
    let attributes = Attributes {
        kind: kind::SOFTWARE,
        config: kind::SOFTWARE_CONTEXT_SWITCHES,
        period: 1,
        sample_type: sample_type::TID
            | sample_type::TIME
            | sample_type::CPU
            | sample_type::CALLCHAIN
            | sample_type::USER_REGISTERS,
        flags: wanted,
        wakeup: ring_bytes as u32 / 2,
        user_registers: registers::MASK,
        clock: libc::CLOCK_MONOTONIC,
        stack_max: KERNEL_FRAMES,
        ..Attributes::default()
    };
    PerfEvent::open(attributes, tasks, cpu)
}
