//! A *bell* rings on one CPU when a process executes a program. The side band tells that too, but
//! wakes its reader only when it fills up: that is for when much happens, and a bell is for when
//! nothing did.

use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind};
use crate::ring::Ring;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// It is a page at least, which holds dozens of records. One that does not fit rings all the same.
const RING_BYTES: usize = 4 << 10;

/// The bell of one CPU.
#[derive(Debug)]
pub struct Bell {
    event: PerfEvent,
    ring: Ring,
}

impl Bell {
    /// Rings from now on.
    pub fn open(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: kind::SOFTWARE,
            config: kind::SOFTWARE_DUMMY,
            // The kernel tells of other new names as well, which are few.
            flags: flags::DISABLED | flags::COMM | flags::COMM_EXEC,
            wakeup: 1,
            ..Attributes::default()
        };
        let event = PerfEvent::open(attributes, Tasks::All, cpu)?;
        let ring = Ring::map(event.as_fd(), RING_BYTES)?;
        event.enable()?;
        Ok(Self { event, ring })
    }

    /// Whether it has rung since the last call.
    pub fn has_rung(&mut self) -> bool {
        let mut has_rung = false;
        self.ring.drain(|_| has_rung = true);
        has_rung
    }
}

impl AsFd for Bell {
    /// Becomes readable when it rings.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
