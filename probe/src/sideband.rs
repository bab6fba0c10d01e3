//! The *side band*: the kernel's records about processes while they are being sampled (exec, mmap,
//! fork, exit), in one ring per CPU, with times on the clock of the samples.

pub mod bell;
pub mod record;

use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind, sample_type};
use crate::ring::Ring;
use record::Event;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Size of one CPU's ring. With its header page it is exactly what the kernel allows every user to
/// lock (`kernel.perf_event_mlock_kb`); 512 KiB hold about 4000 mmap records.
pub const RING_BYTES: usize = 512 << 10;

/// The side band of one CPU.
#[derive(Debug)]
pub struct SideBand {
    event: PerfEvent,
    ring: Ring,
}

impl SideBand {
    /// Opens the side band of these tasks, with a ring of `ring_bytes` bytes.
    pub fn open(tasks: Tasks<'_>, cpu: u32, ring_bytes: usize) -> io::Result<Self> {
        let event = open_event(tasks, cpu, ring_bytes)?;
        let ring = Ring::map(event.as_fd(), ring_bytes)?;
        event.enable()?;
        Ok(Self { event, ring })
    }

    /// Adds the side band of another task, in the same ring. The returned event has to be kept as
    /// long as its records are wanted.
    pub fn join(&self, tasks: Tasks<'_>, cpu: u32) -> io::Result<PerfEvent> {
        let event = open_event(tasks, cpu, RING_BYTES)?;
        event.write_to_ring_of(self.event.as_fd())?;
        event.enable()?;
        Ok(event)
    }

    /// Appends the events since the last call.
    pub fn drain(&mut self, events: &mut Vec<Event>) {
        self.ring.drain(|bytes| {
            if let Some(event) = record::parse(bytes) {
                events.push(event);
            }
        });
    }
}

impl AsFd for SideBand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Opens the event, without build-ids, which Linux 5.12 could add to mappings: while they are
/// requested, the kernel also flags the mappings that it reports to other programs, and `perf
/// record` of Linux 6.1 aborts at the first of those.
fn open_event(tasks: Tasks<'_>, cpu: u32, ring_bytes: usize) -> io::Result<PerfEvent> {
    // For a single task, its children are included; and the kernel is excluded, as not every user
    // may observe it.
    let of_task = match tasks {
        Tasks::One(_) => flags::INHERIT | flags::EXCLUDE_KERNEL,
        Tasks::All | Tasks::Of(_) => 0,
    };
    let attributes = Attributes {
        kind: kind::SOFTWARE,
        config: kind::SOFTWARE_DUMMY,
        sample_type: sample_type::TID | sample_type::TIME | sample_type::CPU,
        flags: flags::DISABLED
            | flags::MMAP
            | flags::MMAP2
            | flags::COMM
            | flags::COMM_EXEC
            | flags::TASK
            | flags::SAMPLE_ID_ALL
            | flags::USE_CLOCK
            | flags::WATERMARK
            | of_task,
        wakeup: ring_bytes as u32 / 2,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    PerfEvent::open(attributes, tasks, cpu)
}
