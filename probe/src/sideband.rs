//! The *side band*: what the kernel tells about processes while they are being
//! sampled — exec, mmap, fork, exit — as records in one ring per CPU, with times
//! on the clock of the samples.

pub mod record;
mod ring;

use crate::perf_event::{Attributes, PerfEvent, flags, kind, sample_type};
use record::Event;
use ring::Ring;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of one CPU's ring. With its header page it is just what the kernel
/// lets every user lock (`kernel.perf_event_mlock_kb`); 512 KiB hold about
/// 4000 mmap records.
const RING_BYTES: usize = 512 << 10;

/// The side band of one CPU.
#[derive(Debug)]
pub struct SideBand {
    event: PerfEvent,
    ring: Ring,
    /// Build-ids come with the mappings (Linux 5.12).
    pub build_ids: bool,
}

impl SideBand {
    pub fn open(cpu: u32) -> io::Result<Self> {
        let (event, build_ids) = match open_event(cpu, flags::BUILD_ID) {
            Ok(event) => (event, true),
            // Older kernels refuse the unknown bit.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (open_event(cpu, 0)?, false)
            }
            Err(error) => return Err(error),
        };
        let ring = Ring::map(event.as_fd(), RING_BYTES)?;
        event.enable()?;
        Ok(Self {
            event,
            ring,
            build_ids,
        })
    }

    /// Appends what has come since the last call.
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

fn open_event(cpu: u32, extra_flags: u64) -> io::Result<PerfEvent> {
    PerfEvent::open(
        Attributes {
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
                | extra_flags,
            wakeup: RING_BYTES as u32 / 2,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        },
        cpu,
    )
}
