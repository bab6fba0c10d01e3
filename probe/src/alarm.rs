//! An *alarm* ends the wait of a thread from another thread.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// An eventfd: once it has rung, it stays readable until it is silenced.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// Creates an alarm that has not rung.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    /// Ends the wait of the thread that waits for it, or the next wait.
    pub fn ring(&self) {
        // Writing fails if the counter is full, which is readable all the same.
        _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Resets it: it is not readable any more until it rings again. Returns whether it had rung.
    pub fn silence(&self) -> bool {
        // Reading fails if it has not.
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }

    /// Waits until it rings, but no longer than `time`, and resets it.
    pub fn wait(&self, time: Duration) {
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        let time = Timespec::try_from(time).ok();
        // A signal may end it early, as any caller has to expect.
        _ = poll(&mut descriptors, time.as_ref());
        self.silence();
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether a descriptor is readable now.
#[cfg(test)]
pub fn is_readable(descriptor: &impl AsFd) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut descriptors, Some(&Timespec::default())).unwrap() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn it_ends_a_wait_whether_it_rings_before_or_meanwhile() {
        let alarm = Arc::new(Alarm::new().unwrap());
        assert!(!alarm.silence());
        alarm.ring();
        assert!(alarm.silence());
        alarm.ring();
        alarm.ring();
        assert!(is_readable(&alarm));
        alarm.wait(Duration::MAX);
        assert!(!is_readable(&alarm), "two rings end one wait");
        let other = alarm.clone();
        let thread = std::thread::spawn(move || other.ring());
        alarm.wait(Duration::MAX);
        thread.join().unwrap();
    }

    #[test]
    fn a_wait_has_an_end_without_it() {
        let alarm = Alarm::new().unwrap();
        alarm.wait(Duration::ZERO);
        alarm.wait(Duration::from_millis(1));
        assert!(!is_readable(&alarm));
    }
}
