//! A process that performs requests, one after the other, and that may get stuck.

use super::message::{Terms, Word, read_request, write_word};
use super::mistakes::Mistakes;
use super::socket::{Inbox, send};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use symbolize::Reason;
use symbolize::opener::{Blocker, Mounts, Opening, Watch};

/// Reports each place before it may wait there, and keeps away from avoided places.
struct Announcing<'a> {
    socket: BorrowedFd<'a>,
    terms: &'a Terms,
    /// The place at which the request itself begins to wait, which needs no report.
    told: Option<Blocker>,
}

impl Watch for Announcing<'_> {
    fn enter(&mut self, place: Blocker) -> Result<(), Reason> {
        let is_unknown = self.terms.is_careful && matches!(place, Blocker::FileSystem(..));
        if is_unknown || self.terms.avoided.contains(&place) {
            return Err(Reason::Remote);
        }
        if self.told != Some(place) {
            // Errors are ignored: if the other end is closed, reading the next message ends this
            // process.
            _ = send(self.socket, &write_word(&Word::Entering(place)), &[]);
        }
        self.told = None;
        Ok(())
    }
}

/// Serves requests until the other end closes.
pub fn serve(socket: &UnixStream) {
    std::panic::set_hook(Box::new(faults::note_place));
    let (mut inbox, mut mounts) = (Inbox::default(), Mounts::default());
    let mut mistakes = Mistakes::default();
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
        for fault in mistakes.new_ones() {
            // An error is noticed when the answer is sent.
            _ = send(socket, &write_word(&Word::Mistaken(fault)), &[]);
        }
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
