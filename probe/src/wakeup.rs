//! Waits until a BPF ring wakes its reader, which is not the same as having something to read.
//!
//! A ring counts as readable from its first record on, so that polling it never sleeps while
//! samples come. Its programs wake readers only when it fills up; an edge-triggered epoll reports
//! that, and nothing else.

use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Becomes readable when a ring wakes its readers.
#[derive(Debug)]
pub struct Wakeup {
    epoll: OwnedFd,
}

impl Wakeup {
    /// Makes a descriptor for one ring.
    pub fn of(ring: impl AsFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, ring, epoll::EventData::new_u64(0), flags)?;
        Ok(Self { epoll })
    }

    /// Clears the wake-up: it is not readable any more.
    pub fn clear(&self) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        // If this fails it stays readable: the ring is read too early, and nothing is lost.
        _ = epoll::wait(
            &self.epoll,
            &mut events,
            Some(&rustix::event::Timespec::default()),
        );
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::is_readable;
    use std::io::Write as _;

    #[test]
    fn what_was_told_is_not_told_again_until_there_is_more() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let wakeup = Wakeup::of(&reader).unwrap();
        assert!(!is_readable(&wakeup));
        for _ in 0..2 {
            writer.write_all(b"one").unwrap();
            assert!(is_readable(&wakeup));
            wakeup.clear();
            assert!(!is_readable(&wakeup), "although nobody has read the pipe");
        }
    }
}
