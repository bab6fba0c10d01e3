//! The *reader* of what we write is the program at the other end of a pipe, or a terminal. We watch
//! whether it is still there, because a write fails only when there is something to write.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::OnceCell;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Time between two looks where the event loop cannot tell what has happened.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What wakes up a watch: besides errors, the end of what could be read, which a socket tells.
const WATCHED: Interest = Interest::ERROR.add(Interest::READABLE);

/// A copy of a descriptor that is written to elsewhere, for watching its other end.
#[derive(Debug)]
pub struct Reader {
    written: OwnedFd,
    /// How the other end is watched, since it was first waited for.
    watch: OnceCell<Watch>,
}

/// How the other end of a descriptor is watched.
#[derive(Debug)]
enum Watch {
    /// The event loop watches another copy of the descriptor.
    Loop(AsyncFd<OwnedFd>),
    /// Not at all: there is no other end that could be closed.
    No,
    /// By a look at it from time to time.
    Looks,
}

impl Reader {
    /// Watches the other end of this descriptor. Returns an error if the descriptor cannot be
    /// duplicated.
    pub fn of(written: impl AsFd) -> io::Result<Self> {
        let written = written.as_fd().try_clone_to_owned()?;
        Ok(Self {
            written,
            watch: OnceCell::new(),
        })
    }

    /// Waits until the other end is closed. Without another end, as of a file, it waits forever.
    pub async fn gone(&self) {
        let watch = self.watch.get_or_init(|| Watch::of(&self.written));
        while !is_gone(self.written.as_fd()) {
            match watch {
                Watch::Loop(watched) => {
                    let Ok(mut ready) = watched.ready(WATCHED).await else {
                        // The event loop ends.
                        return pending().await;
                    };
                    ready.clear_ready();
                }
                Watch::No => return pending().await,
                Watch::Looks => {}
            }
            if !is_gone(self.written.as_fd()) {
                // Something else has happened, for example a key of a terminal was pressed. Some of
                // that stays, as that a socket will not send anything.
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

impl Watch {
    /// Begins to watch the other end of this descriptor.
    #[expect(
        deprecated,
        reason = "it is for types whose descriptor may change; that of an `OwnedFd` does not, and \
                  the function that replaces it is unsafe"
    )]
    fn of(written: &OwnedFd) -> Self {
        let watched = written
            .try_clone()
            .and_then(|copy| AsyncFd::with_interest(copy, WATCHED));
        match watched {
            Ok(watched) => Self::Loop(watched),
            // epoll_ctl(2): a regular file, `/dev/null`.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::No,
            Err(_) => Self::Looks,
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

    /// Runs `test` in an event loop.
    fn in_a_loop(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn the_end_of_a_reader_ends_the_wait() {
        in_a_loop(async {
            let (reader, writer) = io::pipe().unwrap();
            let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
            for (ours, theirs) in [
                (OwnedFd::from(writer), OwnedFd::from(reader)),
                (OwnedFd::from(one), OwnedFd::from(other)),
            ] {
                let watched = Reader::of(&ours).unwrap();
                let gone = watched.gone();
                tokio::pin!(gone);
                let soon = tokio::time::timeout(Duration::from_millis(20), &mut gone);
                assert!(soon.await.is_err(), "the reader is there");
                assert!(matches!(watched.watch.get(), Some(Watch::Loop(_))));
                drop(theirs);
                gone.await;
                // Also if it is asked once more.
                watched.gone().await;
            }
        });
    }

    #[test]
    fn a_socket_that_only_receives_is_there_until_it_is_closed() {
        in_a_loop(async {
            let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
            other.shutdown(std::net::Shutdown::Write).unwrap();
            let watched = Reader::of(&one).unwrap();
            let soon = tokio::time::timeout(Duration::from_millis(20), watched.gone());
            assert!(soon.await.is_err());
            drop(other);
            watched.gone().await;
        });
    }

    #[test]
    fn a_file_has_no_reader_that_could_go() {
        in_a_loop(async {
            let null = std::fs::File::create("/dev/null").unwrap();
            for file in [tempfile::tempfile().unwrap(), null] {
                let watched = Reader::of(&file).unwrap();
                let soon = tokio::time::timeout(Duration::from_millis(20), watched.gone());
                assert!(soon.await.is_err());
                assert!(matches!(watched.watch.get(), Some(Watch::No)));
            }
        });
    }
}
