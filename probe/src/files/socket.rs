//! Sends bytes and open files between two of proftop's processes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use symbolize::files::ORDER_FILES_MAX;

/// Maximum number of files in one message; an order for a parser has the most.
pub const FILES_MAX: usize = ORDER_FILES_MAX;

/// Maximum length of a message. The list of mappings of a process is the longest.
const BYTES_MAX: usize = 20 << 20;

/// Minimum size of the receive buffer: most messages are short.
const PIECE_MIN: usize = 4 << 10;
const PIECE_MAX: usize = 64 << 10;

/// Length of the head of a message: four bytes for its length, one for the number of its files.
///
/// The number is needed because a stream socket may deliver the end of one message and
/// the files of the next in one piece.
const HEAD: usize = 5;

/// What was received and not yet taken.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
    /// Buffer for the next piece. It is kept, as clearing a new one for each piece took longer than
    /// everything else that is done with a short message.
    room: Vec<u8>,
}

/// Sends a message. Its files are sent with its first byte.
pub fn send(socket: impl AsFd, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let len = u32::try_from(message.len()).map_err(io::Error::other)?;
    let count = u8::try_from(files.len()).map_err(io::Error::other)?;
    let whole = [&len.to_le_bytes(), &[count][..], message].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many files in a message"));
    }
    let mut rest = whole.as_slice();
    while !rest.is_empty() {
        let sent = sendmsg(
            &socket,
            &[IoSlice::new(rest)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        match sent {
            Ok(sent) => rest = &rest[sent..],
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        control.clear();
    }
    Ok(())
}

impl Inbox {
    /// Waits for the next message, until the deadline if there is one.
    pub fn receive(
        &mut self,
        socket: impl AsFd,
        deadline: Option<Instant>,
    ) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            if let Some(deadline) = deadline {
                wait(socket.as_fd(), deadline)?;
            }
            self.fill(socket.as_fd())?;
        }
    }

    /// Returns the first message, if it is complete. Its files came with its first byte.
    fn take(&mut self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [len @ .., count] = *head;
        let len = u32::from_le_bytes(len) as usize;
        let count = usize::from(count);
        if len > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if rest.len() < len {
            return Ok(None);
        }
        if self.files.len() < count {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let message = rest[..len].to_vec();
        self.bytes.drain(..HEAD + len);
        Ok(Some((message, self.files.drain(..count).collect())))
    }

    /// Receives the next piece and appends it to the bytes. The buffer is small for the first piece
    /// of a message, and is larger only if the head announces more.
    fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let wanted = self.missing().clamp(PIECE_MIN, PIECE_MAX);
        if self.room.len() < wanted {
            self.room = vec![0; wanted];
        }
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut self.room)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        let bytes = match received {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.bytes.extend_from_slice(&self.room[..bytes]);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        // What was received has the ends of two messages at most.
        if self.files.len() > 2 * FILES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Returns the number of bytes of the first message that are still missing, according to its
    /// head.
    fn missing(&self) -> usize {
        let len = self.bytes.first_chunk::<4>();
        let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
        (HEAD + len).saturating_sub(self.bytes.len())
    }
}

fn wait(socket: BorrowedFd<'_>, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut sockets = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match poll(&mut sockets, Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (one, other) = UnixStream::pair().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "inside").unwrap();
        let long = vec![7; 1 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                send(&one, b"first", &[]).unwrap();
                send(&one, &long, &[file.as_file().as_fd()]).unwrap();
                send(&one, b"", &[]).unwrap();
            });
            let mut inbox = Inbox::default();
            let mut next = || inbox.receive(&other, None).unwrap();
            assert_eq!(next().0, b"first");
            let (bytes, mut files) = next();
            assert_eq!(bytes, long);
            let mut text = String::new();
            let file = files.pop().unwrap();
            std::fs::File::from(file).read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside");
            assert_eq!(next().0, b"");
        });
    }

    #[test]
    fn files_belong_to_the_message_that_they_were_sent_with() {
        let (one, other) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        // Both are sent before the first is received: they may come in one piece.
        send(&one, b"first", &[]).unwrap();
        send(&one, b"second", &[file.as_fd()]).unwrap();
        let mut inbox = Inbox::default();
        let (bytes, files) = inbox.receive(&other, None).unwrap();
        assert_eq!((&*bytes, files.len()), (&b"first"[..], 0));
        let (bytes, files) = inbox.receive(&other, None).unwrap();
        assert_eq!((&*bytes, files.len()), (&b"second"[..], 1));
    }

    #[test]
    fn nobody_is_waited_for_longer_than_the_deadline() {
        let (one, other) = UnixStream::pair().unwrap();
        let soon = Some(Instant::now() + Duration::from_millis(1));
        let error = Inbox::default().receive(&other, soon).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(one);
        let error = Inbox::default().receive(&other, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
