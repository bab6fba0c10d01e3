//! Does one command in a process of its own that has no rights, because it parses what a stranger
//! may have written, such as a recording.
//!
//! The process is forked from this one, so that the command is an ordinary closure that knows
//! everything that was read before. It opens no files: it has those that were open for it, and asks
//! for programs and debug files of this machine. What it writes comes back through pipes, because it
//! has no terminal either.
//!
//! ```text
//! this process ── fork ───────────────────────────► the command
//!              ◄── standard output and messages ──
//!              ◄── Request: a program ────────────
//!              ── File ───────────────────────────►
//! ```

use super::message::{Terms, Word, read_request, read_word, write_word};
use super::parser::Giver;
use super::parsers::is_program;
use super::socket::{Inbox, send};
use super::spawner::{NAME_WITHOUT_RIGHTS, die_with, fork};
use super::{GIVER, of_targets, of_user};
use crate::confine;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use symbolize::Reason;
use symbolize::files::{Reply, Request};

/// How long to wait for threads that are about to end, as there must be only one when the process is
/// forked.
const THREADS_END: Duration = Duration::from_millis(500);

/// How long to wait for the rest of a request, and for the process to take an answer. It does
/// nothing else meanwhile, unless it was taken over.
const MESSAGE: Duration = Duration::from_secs(5);

/// How long to wait for the end of a process that has closed its standard output and error.
const END: Duration = Duration::from_secs(2);

/// Size of the pieces in which its output is read, that of a pipe.
const PIECE_BYTES: usize = 64 << 10;

/// A command that is being done in a process without rights. Dropping it ends the process.
#[derive(Debug)]
pub struct Apart {
    pid: Pid,
    has_ended: bool,
    requests: UnixStream,
    inbox: Inbox,
    output: PipeReader,
    messages: PipeReader,
}

/// How the process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
    /// Its output was no longer wanted.
    Stopped,
}

/// Receives what the process writes.
pub trait Listener {
    /// A piece of its standard output. Returns whether more is wanted.
    fn output(&mut self, piece: &[u8]) -> bool;

    /// A line of its standard error, without the line break.
    fn message(&mut self, line: &[u8]);
}

/// Starts a process that does the command, whose result is the exit status. It keeps the descriptors
/// in `kept`; its standard input is kept if it is among these. It is an error if this process has
/// several threads.
pub fn start(kept: &[RawFd], command: impl FnOnce() -> u8) -> io::Result<Apart> {
    wait_for_threads()?;
    let (ours, theirs) = UnixStream::pair()?;
    let (output, written) = io::pipe()?;
    let (messages, said) = io::pipe()?;
    // A process that does not take its answers must not hold up this one.
    ours.set_write_timeout(Some(MESSAGE))?;
    let parent = rustix::process::getpid();
    if let Some(pid) = fork()? {
        return Ok(Apart {
            pid,
            has_ended: false,
            requests: ours,
            inbox: Inbox::default(),
            output,
            messages,
        });
    }
    let begun = begin(parent, kept, &theirs, written.as_fd(), said.as_fd());
    let status = match begun {
        Ok(()) => {
            _ = GIVER.set(Arc::new(Giver::new(theirs)));
            command()
        }
        Err(_) => 1,
    };
    _ = io::stdout().flush();
    // SAFETY: ends this process without unwinding or dropping what belongs to its parent.
    unsafe { libc::_exit(status.into()) }
}

/// Prepares the forked process. An error if it could keep something that it must not have.
fn begin(
    parent: Pid,
    kept: &[RawFd],
    requests: &UnixStream,
    output: BorrowedFd<'_>,
    messages: BorrowedFd<'_>,
) -> io::Result<()> {
    const STDIN: RawFd = 0;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(messages)?;
    if !kept.contains(&STDIN) {
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    }
    let mut kept = [kept, &[0, 1, 2, requests.as_raw_fd()]].concat();
    close_all_but(&mut kept);
    confine::be_ended_first();
    _ = rustix::thread::set_name(NAME_WITHOUT_RIGHTS);
    confine::own_nothing_if_root();
    // The kernel forgets this signal when a process changes its user.
    die_with(parent)?;
    confine::command();
    Ok(())
}

/// Closes all descriptors but these, among them the sockets to readers.
fn close_all_but(kept: &mut Vec<RawFd>) {
    kept.sort_unstable();
    kept.dedup();
    let ends = kept.iter().map(|kept| kept.cast_unsigned());
    let firsts = ends.clone().map(|kept| kept + 1);
    for (first, last) in firsts.zip(ends.skip(1).map(|next| next - 1).chain([u32::MAX])) {
        if first <= last {
            // SAFETY: only descriptors in `kept` are used from here on: what owns the others is
            // neither used nor dropped in this process.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

/// Waits until this is the only thread. Another one may hold a lock that the forked process needs.
fn wait_for_threads() -> io::Result<()> {
    let deadline = Instant::now() + THREADS_END;
    while std::fs::read_dir("/proc/self/task")?.count() > 1 {
        if Instant::now() > deadline {
            return Err(io::Error::other("there are other threads"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

impl Apart {
    /// Passes on what the process writes, and opens the programs that it asks for, until it ends.
    pub fn finish(mut self, listener: &mut dyn Listener) -> io::Result<Ended> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut lines = Lines::default();
        let (mut has_output, mut has_messages, mut has_requests) = (true, true, true);
        while has_output || has_messages {
            let [output, messages, requests] =
                self.wait([has_output, has_messages, has_requests])?;
            if messages {
                let length = self.messages.read(&mut piece)?;
                has_messages = length > 0;
                lines.add(&piece[..length], listener);
            }
            if output {
                let length = self.output.read(&mut piece)?;
                has_output = length > 0;
                if !listener.output(&piece[..length]) {
                    return Ok(Ended::Stopped);
                }
            }
            if requests {
                has_requests = self.answer().is_ok();
            }
        }
        lines.end(listener);
        self.end()
    }

    /// Waits until at least one of the wanted descriptors can be read, or is at its end.
    fn wait(&self, wanted: [bool; 3]) -> io::Result<[bool; 3]> {
        let all = [
            self.output.as_fd(),
            self.messages.as_fd(),
            self.requests.as_fd(),
        ];
        let flags = |wanted| {
            if wanted {
                PollFlags::IN
            } else {
                PollFlags::empty()
            }
        };
        let mut polled: Vec<PollFd<'_>> = all
            .iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted)
            .map(|(file, wanted)| PollFd::from_borrowed_fd(*file, flags(wanted)))
            .collect();
        while let Err(error) = poll(&mut polled, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let mut seen = polled.iter().map(|file| !file.revents().is_empty());
        Ok(wanted.map(|wanted| wanted && seen.next().unwrap_or(false)))
    }

    /// Answers one request. After an error, the process gets no more files.
    fn answer(&mut self) -> io::Result<()> {
        let deadline = Some(Instant::now() + MESSAGE);
        let (word, files) = self.inbox.receive(&self.requests, deadline)?;
        let Some(Word::Asking(request, files)) = read_word(word, files) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let reply = read_request(&request, &files, |request, terms| perform(&request, &terms));
        let reply = reply.unwrap_or(Err(Reason::Refused));
        let file = reply.as_ref().ok().and_then(|reply| reply.file.as_ref());
        let file = file.map(OwnedFd::try_clone).transpose()?;
        let files: Vec<_> = file.iter().map(OwnedFd::as_fd).collect();
        send(&self.requests, &write_word(&Word::Done(reply)), &files)
    }

    /// Returns how the process has ended. It is killed if it goes on without its output.
    fn end(&mut self) -> io::Result<Ended> {
        let deadline = Instant::now() + END;
        loop {
            if let Some((_, status)) = waitpid(Some(self.pid), WaitOptions::NOHANG)? {
                self.has_ended = true;
                let exited = status
                    .exit_status()
                    .and_then(|code| u8::try_from(code).ok());
                let killed = status.terminating_signal().unwrap_or(0);
                return Ok(exited.map_or(Ended::Killed(killed), Ended::Exited));
            }
            if Instant::now() > deadline {
                kill_process(self.pid, Signal::KILL)?;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if !self.has_ended {
            // Errors are ignored: it may have ended by itself.
            _ = kill_process(self.pid, Signal::KILL);
            _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

/// Performs a request: opens a program or debug file that the user could open, or has a compressed
/// symbol table unpacked. No other file is opened, even if the recording names one.
fn perform(request: &Request<'_>, terms: &Terms) -> Result<Reply, Reason> {
    match request {
        Request::Unpack { .. } => of_targets().perform(request),
        Request::Beneath { .. } => {
            let reply = of_user().with_remote(terms.remote).perform(request)?;
            let file = reply.file.as_ref().ok_or(Reason::FileGone)?;
            is_program(file).then_some(reply).ok_or(Reason::Refused)
        }
        _ => Err(Reason::Refused),
    }
}

/// The lines of standard error, put together from pieces.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

/// Maximum length of a line. A longer one is passed on as several.
const LINE_BYTES_MAX: usize = 64 << 10;

impl Lines {
    fn add(&mut self, piece: &[u8], listener: &mut dyn Listener) {
        let mut parts = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.begun.extend_from_slice(part);
            if parts.peek().is_some() || self.begun.len() > LINE_BYTES_MAX {
                listener.message(&self.begun);
                self.begun.clear();
            }
        }
    }

    fn end(&mut self, listener: &mut dyn Listener) {
        if !self.begun.is_empty() {
            listener.message(&self.begun);
        }
    }
}
