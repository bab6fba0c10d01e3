//! A *bell* wakes the sampler when a process or thread begins or ends on one CPU, or executes a
//! program: a process that lives for a moment has to be looked at soon. The side band has that as
//! well, but wakes its reader only when it fills up, which suits times of much activity; the bell is
//! for quiet times.

use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind};
use crate::ring::Ring;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Size of the ring: at least a page, which holds dozens of records. A record that does not fit
/// wakes the reader as well.
const RING_BYTES: usize = 4 << 10;

/// The bell of one CPU.
#[derive(Debug)]
pub struct Bell {
    event: PerfEvent,
    ring: Ring,
}

impl Bell {
    /// Opens the bell and enables it.
    pub fn open(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: kind::SOFTWARE,
            config: kind::SOFTWARE_DUMMY,
            // The kernel reports other new names as well, which are few.
            flags: flags::DISABLED | flags::TASK | flags::COMM | flags::COMM_EXEC,
            wakeup: 1,
            ..Attributes::default()
        };
        let event = PerfEvent::open(attributes, Tasks::All, cpu)?;
        let ring = Ring::map(event.as_fd(), RING_BYTES)?;
        event.enable()?;
        Ok(Self { event, ring })
    }

    /// Whether any of that has happened since the last call.
    pub fn has_rung(&mut self) -> bool {
        let mut has_rung = false;
        self.ring.drain(|_| has_rung = true);
        has_rung
    }
}

impl AsFd for Bell {
    /// Becomes readable when any of that happens.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
