//! The *reader* of what we write: a pipe's other end, or a terminal. Whether it is still
//! there is asked now and then, because a write would say so only when there is
//! something to write.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How often it is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Watches a descriptor that is written to elsewhere.
#[derive(Debug)]
pub struct Reader(OwnedFd);

impl Reader {
    pub fn of(written: impl AsFd) -> io::Result<Self> {
        written.as_fd().try_clone_to_owned().map(Reader)
    }

    /// Waits until nobody reads any more. Files have no reader that could go.
    pub async fn gone(&self) {
        while !is_gone(self.0.as_fd()) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether nobody is left at the other end of a pipe or terminal.
pub fn is_gone(fd: BorrowedFd<'_>) -> bool {
    // Errors and hang-ups are told without being asked for.
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
