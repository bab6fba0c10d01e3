//! The *reader* of what we write is the program at the other end of a pipe, or a terminal. We check
//! regularly whether it is still there, because a write fails only when there is something to
//! write.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Time between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A copy of a descriptor that is written to elsewhere, for watching its other end.
#[derive(Debug)]
pub struct Reader(OwnedFd);

impl Reader {
    /// Watches the other end of this descriptor. Returns an error if the descriptor cannot be
    /// duplicated.
    pub fn of(written: impl AsFd) -> io::Result<Self> {
        written.as_fd().try_clone_to_owned().map(Reader)
    }

    /// Waits until the other end is closed. For regular files it waits forever.
    pub async fn gone(&self) {
        while !is_gone(self.0.as_fd()) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether the other end of a pipe or terminal is closed.
pub fn is_gone(fd: BorrowedFd<'_>) -> bool {
    // `poll` reports errors and hang-ups even if no event is requested.
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let now = Timespec::default();
    let found = poll(&mut polled, Some(&now));
    found.is_ok_and(|count| count > 0)
        && (polled[0].revents()).intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_gone_when_its_reader_is() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(!is_gone(writer.as_fd()));
        drop(reader);
        assert!(is_gone(writer.as_fd()));
        assert!(!is_gone(tempfile::tempfile().unwrap().as_fd()));
    }
}
