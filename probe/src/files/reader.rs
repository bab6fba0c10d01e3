//! A process that performs requests, one after the other, and may get stuck.

use super::message::{Terms, Word, read_request, write_word};
use super::socket::{Inbox, send};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use symbolize::Reason;
use symbolize::opener::{Blocker, Mounts, Opening, Watch};

/// Tells the other side where it is about to wait, and keeps away from what is avoided.
struct Announcing<'a> {
    socket: BorrowedFd<'a>,
    terms: &'a Terms,
    /// Where the request itself says that it waits at first.
    told: Option<Blocker>,
}

impl Watch for Announcing<'_> {
    fn enter(&mut self, place: Blocker) -> Result<(), Reason> {
        let is_unknown = self.terms.is_careful && matches!(place, Blocker::FileSystem(..));
        if is_unknown || self.terms.avoided.contains(&place) {
            return Err(Reason::Remote);
        }
        if self.told != Some(place) {
            // If nobody listens any more, the next message ends this process.
            _ = send(self.socket, &write_word(&Word::Entering(place)), &[]);
        }
        self.told = None;
        Ok(())
    }
}

/// Until nobody asks any more.
pub fn serve(socket: &UnixStream) {
    let (mut inbox, mut mounts) = (Inbox::default(), Mounts::default());
    while let Ok((message, files)) = inbox.receive(socket, None) {
        let done = read_request(&message, &files, |request, terms| {
            let mut watch = Announcing {
                socket: socket.as_fd(),
                terms: &terms,
                told: request.waits_at_first(),
            };
            let mut opening = Opening {
                remote: terms.remote,
                mounts: &mut mounts,
                watch: &mut watch,
                mountinfo: None,
            };
            request.perform(&mut opening)
        });
        let word = Word::Done(done.unwrap_or(Err(Reason::Refused)));
        let file = match &word {
            Word::Done(Ok(reply)) => reply.file.as_ref(),
            _ => None,
        };
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        if send(socket, &write_word(&word), &files).is_err() {
            return;
        }
    }
}
