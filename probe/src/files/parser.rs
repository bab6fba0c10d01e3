//! A process that parses untrusted files, one after the other. It opens no files: it requests those
//! that it was not given, such as a debug file that a file names.

use super::GIVER;
use super::message::{Task, Terms, Word, read_order, read_word, write_request, write_word};
use super::mistakes::Mistakes;
use super::socket::{Inbox, send};
use crate::memory;
use probe_ebpf::python::check;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use symbolize::demangle::is_worn;
use symbolize::files::{Proxy, Reply, Request, Work};
use symbolize::parser::{Parser, memory_order};
use symbolize::{Files, Reason, RemoteFiles};

/// After this time without an order, free memory is returned to the kernel.
const QUIET: Duration = Duration::from_secs(2);

/// What was read of a file is dropped when there was no order about it for so long. Reading a large
/// unit of debug information, or the functions of a large program, again takes a tenth of a second.
const UNUSED: Duration = Duration::from_secs(30);

/// How often what is unused is looked for while there are orders.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Does what an order asks for, with its message and files.
pub type Maker = fn(&[u8], Vec<OwnedFd>, &Files) -> Result<Reply, Reason>;

/// What parsers do that neither [`Parser`] nor this crate knows.
#[derive(Debug, Clone, Copy)]
pub struct Makers {
    /// Makes an unwind table, in the form of the walk.
    pub table: Maker,
    /// Reads a recording, and makes one of our own format of it.
    pub recording: Maker,
}

/// The other end of the socket, which sends orders and performs requests.
#[derive(Debug)]
pub struct Giver {
    socket: UnixStream,
    inbox: Mutex<Inbox>,
}

/// Serves orders until the other end closes, or a fault was detected: the state that it left is not
/// relied upon. It also ends after an order with names that were made to take long: a thread may still
/// be busy with one, and its successor has time for deep names again.
pub fn serve(socket: OwnedFd, makers: Makers) {
    std::panic::set_hook(Box::new(faults::note_place));
    let giver = Arc::new(Giver::new(socket.into()));
    _ = GIVER.set(giver.clone());
    let (parser, way) = (Parser::default(), Files::by(giver.clone()));
    let mut mistakes = Mistakes::default();
    let mut looked = Instant::now();
    while let Some((message, files)) = giver.next(&parser) {
        let done = match read_order(&message) {
            Some(Task {
                work,
                file,
                message,
            }) => {
                // A parser gets orders for one kind of work only.
                if let Some(nice) = nice(work) {
                    _ = rustix::process::setpriority_process(None, nice);
                }
                faults::catch(work.name(), || match work {
                    Work::Tables | Work::WantedTables => (makers.table)(message, files, &way),
                    Work::Recordings => (makers.recording)(message, files, &way),
                    Work::PythonMemory => memory_order::answer(message, files, check),
                    work => parser.perform(work, file, files, message, &way),
                })
            }
            None => Ok(Err(Reason::Refused)),
        };
        for fault in mistakes.new_ones() {
            giver.say(&Word::Mistaken(fault));
        }
        let is_mistaken = done.is_err();
        giver.say(&Word::Done(done.unwrap_or(Err(Reason::Mistake))));
        if is_mistaken || is_worn() {
            return;
        }
        if looked.elapsed() > LOOK_EVERY {
            parser.forget_unused(UNUSED);
            looked = Instant::now();
        }
        // Parsing a large new file takes ten times the memory that is kept of it.
        memory::give_back_much();
    }
}

/// Returns the nice value for such work; `None` leaves the priority as it was at the start.
fn nice(work: Work) -> Option<i32> {
    match work {
        // On a busy machine a process of low priority would take seconds for what takes a tenth
        // of one.
        Work::Names
        | Work::WantedTables
        | Work::JitNames
        | Work::Python
        | Work::PythonMemory
        | Work::Code
        | Work::Facts
        | Work::Sites
        | Work::Recordings
        | Work::Archives
        | Work::Packages => None,
        Work::Tables => Some(5),
        Work::Lines => Some(19),
    }
}

impl Giver {
    /// Sends requests through this socket.
    pub fn new(socket: UnixStream) -> Self {
        Giver {
            socket,
            inbox: Mutex::default(),
        }
    }

    /// Returns the next order and its files; `None` if there will be no more. Returns memory to the
    /// kernel while waiting.
    fn next(&self, parser: &Parser) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wait = Some(QUIET);
        loop {
            let deadline = wait.map(|wait| Instant::now() + wait);
            match inbox.receive(&self.socket, deadline) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let is_nothing_left = parser.forget_unused(UNUSED);
                    memory::give_back();
                    wait = (!is_nothing_left).then_some(UNUSED);
                }
                order => return order.ok(),
            }
        }
    }

    /// Sends a word. Errors are ignored: if the other end is closed, there is no next order.
    fn say(&self, word: &Word) {
        let file = match word {
            Word::Done(Ok(reply)) => reply.file.as_ref(),
            _ => None,
        };
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        _ = send(&self.socket, &write_word(word), &files);
    }
}

impl Proxy for Giver {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        let terms = Terms {
            remote,
            is_careful: false,
            avoided: Vec::new(),
        };
        let (message, files) = write_request(request, &terms);
        let asking = write_word(&Word::Asking(message, Vec::new()));
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |_| Reason::FileGone;
        send(&self.socket, &asking, &files).map_err(gone)?;
        let (word, files) = inbox.receive(&self.socket, None).map_err(gone)?;
        match read_word(word, files) {
            Some(Word::Done(reply)) => reply,
            _ => Err(Reason::FileGone),
        }
    }
}
