//! The process that forks readers and kills them. It opens no files and sends no requests, so that
//! it never waits for anything but orders.

use super::answer::{MORE, Waiting};
use super::parser::{self, Makers};
use super::reader;
use super::socket::{Inbox, send};
use crate::confine::{self, Filter};
use crate::privilege::UserRights;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, setsid, waitpid,
};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The name of the spawner and of the reader processes.
const NAME: &std::ffi::CStr = c"proftop-files";

/// The name of processes without rights.
pub const NAME_WITHOUT_RIGHTS: &std::ffi::CStr = c"proftop-parser";

/// How long to wait for the answer to an order, which takes a fork.
const ANSWER: Duration = Duration::from_secs(1);

/// How long a reader or parser may leave what it is sent in its socket.
const REPLY: Duration = Duration::from_secs(30);

/// How often the killed readers are checked for having ended: they may be stuck for good.
const REAP: Duration = Duration::from_secs(1);

/// How long to wait for killed readers at the end.
const LAST_REAP: Duration = Duration::from_millis(100);

/// The orders that are not a pid to kill: no process has these numbers.
const SPAWN: u32 = 0;
const SPAWN_FOR_USER: u32 = u32::MAX - 1;
const SPAWN_UNPACKING: u32 = u32::MAX - 2;
const SPAWN_PARSING: u32 = u32::MAX - 3;
const SPAWN_FINDING_CODE: u32 = u32::MAX - 4;
const SPAWN_READING_RECORDINGS: u32 = u32::MAX - 5;
const END: u32 = u32::MAX;

/// The rights that a reader has when it opens files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// proftop's rights, as far as they are for reading.
    Targets,
    /// The rights of the invoking user.
    User,
    /// No rights, as it opens no files: it unpacks one file that it is given, and ends.
    Unpacking,
    /// No rights, as it opens no files: it parses files that it is given, one after the other.
    Parsing,
    /// No rights: it parses files that a user wants to see the code of, and may take more memory.
    FindingCode,
    /// No rights: it reads one recording, and may take as much memory as a command on recordings.
    ReadingRecordings,
}

impl For {
    /// Whether such a process has no rights, and works on files that it is given.
    fn opens_nothing(self) -> bool {
        !matches!(self, For::Targets | For::User)
    }
}

/// proftop's end of the spawner.
#[derive(Debug)]
pub struct Spawner {
    socket: UnixStream,
    inbox: Inbox,
    pid: Pid,
    /// Number of answers that are no longer waited for, and are still to come.
    late: u32,
}

/// A reader that was just forked.
#[derive(Debug)]
pub struct Spawned {
    /// proftop's end of the reader's socket.
    pub socket: UnixStream,
    /// The process number of the reader.
    pub pid: u32,
    /// Number of readers that were killed and have not ended.
    pub stuck: u32,
}

/// Forks the spawner.
pub fn start(makers: Makers) -> io::Result<Spawner> {
    // Determined here once, so that all forked processes have it: they start no programs.
    UserRights::current();
    let (ours, theirs) = UnixStream::pair()?;
    let parent = rustix::process::getpid();
    match fork()? {
        Some(pid) => {
            drop(theirs);
            let mut spawner = Spawner {
                inbox: Inbox::default(),
                socket: ours,
                pid,
                late: 0,
            };
            spawner.receive()?;
            Ok(spawner)
        }
        None => child(|| {
            drop(ours);
            begin(&theirs, parent)?;
            // The spawner is ready from here on.
            send(&theirs, b"ready", &[])?;
            apply(&theirs, makers);
            Ok(())
        }),
    }
}

impl Spawner {
    /// Forks one more reader.
    pub fn spawn(&mut self, for_whom: For) -> io::Result<Spawned> {
        let (ours, theirs) = UnixStream::pair()?;
        // A reader that was taken over may leave replies in its socket for ever. One that gets
        // little CPU time takes them within this time.
        ours.set_write_timeout(Some(REPLY))?;
        let order = match for_whom {
            For::Targets => SPAWN,
            For::User => SPAWN_FOR_USER,
            For::Unpacking => SPAWN_UNPACKING,
            For::Parsing => SPAWN_PARSING,
            For::FindingCode => SPAWN_FINDING_CODE,
            For::ReadingRecordings => SPAWN_READING_RECORDINGS,
        };
        send(&self.socket, &order.to_le_bytes(), &[theirs.as_fd()])?;
        self.late += 1;
        // The other end of the socket of a reader whose answer was given up is closed here, so that
        // it ends.
        while self.late > 1 {
            self.receive()?;
            self.late -= 1;
        }
        let answer = self.receive()?;
        self.late = 0;
        let number = |at: usize| {
            let bytes = answer.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.map(|bytes| u32::from_le_bytes(*bytes))
        };
        match (number(0), number(4)) {
            (Some(pid), Some(stuck)) if pid > 0 => Ok(Spawned {
                socket: ours,
                pid,
                stuck,
            }),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let pid = self.pid();
        let answer = Waiting::new(ANSWER, MORE).receive(&mut self.inbox, &self.socket, pid);
        let (answer, _) = answer.map_err(|_| io::ErrorKind::TimedOut)?;
        Ok(answer)
    }

    /// Returns the process number of the spawner.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().cast_unsigned()
    }

    /// Ends a reader, whatever it is doing, as soon as the kernel allows it.
    pub fn kill(&self, pid: u32) {
        // Errors are ignored: if the spawner is gone, its readers are gone as well.
        _ = send(&self.socket, &pid.to_le_bytes(), &[]);
    }

    /// Ends the spawner, and with it all readers, and waits a moment for that: the process that
    /// adopts orphans may never wait for them.
    pub fn end(&self) {
        _ = send(&self.socket, &END.to_le_bytes(), &[]);
        let deadline = Instant::now() + 2 * LAST_REAP;
        let is_there = || matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        while is_there() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The forked readers, in their parent.
#[derive(Debug)]
struct Readers {
    /// The filter of system calls for readers; an error if the kernel can enforce none.
    filter: io::Result<Filter>,
    /// The filter of system calls for processes that open no files.
    without_files: io::Result<Filter>,
    /// Readers whose end was not seen yet.
    all: HashSet<Pid>,
    killed: HashSet<Pid>,
    makers: Makers,
}

/// Performs orders until the other end orders the end, or is closed. An order is the pid of a
/// reader to kill, or one of the numbers above.
fn apply(orders: &UnixStream, makers: Makers) {
    let mut inbox = Inbox::default();
    let mut readers = Readers {
        filter: Filter::of_reader(),
        without_files: Filter::without_files(),
        all: HashSet::new(),
        killed: HashSet::new(),
        makers,
    };
    loop {
        let wake = (!readers.killed.is_empty()).then(|| Instant::now() + REAP);
        let order = inbox.receive(orders, wake);
        readers.reap();
        let (order, files) = match order {
            Ok(order) => order,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
            Err(_) => return,
        };
        match order.first_chunk().map(|order| u32::from_le_bytes(*order)) {
            Some(
                order @ (SPAWN
                | SPAWN_FOR_USER
                | SPAWN_UNPACKING
                | SPAWN_PARSING
                | SPAWN_FINDING_CODE
                | SPAWN_READING_RECORDINGS),
            ) => {
                let for_whom = match order {
                    SPAWN => For::Targets,
                    SPAWN_UNPACKING => For::Unpacking,
                    SPAWN_PARSING => For::Parsing,
                    SPAWN_FINDING_CODE => For::FindingCode,
                    SPAWN_READING_RECORDINGS => For::ReadingRecordings,
                    _ => For::User,
                };
                let socket = files.into_iter().next();
                let new = socket.and_then(|socket| readers.spawn(socket, orders, for_whom));
                let answer = [new.unwrap_or(0), readers.killed.len() as u32]
                    .map(u32::to_le_bytes)
                    .concat();
                if send(orders, &answer, &[]).is_err() {
                    return;
                }
            }
            None | Some(END) => return readers.end(),
            Some(pid) => readers.kill(pid),
        }
    }
}

impl Readers {
    fn spawn(&mut self, socket: OwnedFd, orders: &UnixStream, for_whom: For) -> Option<u32> {
        let parent = rustix::process::getpid();
        if let Some(pid) = fork().ok()? {
            self.all.insert(pid);
            return Some(pid.as_raw_pid().cast_unsigned());
        }
        child(|| {
            let socket = UnixStream::from(socket);
            close(orders);
            if for_whom.opens_nothing() {
                confine::be_ended_first();
                _ = rustix::thread::set_name(NAME_WITHOUT_RIGHTS);
            }
            // The kernel forgets the signal for a parent's death (`die_with`) when a process
            // changes its user, and the filter forbids setting it again: so it is set between the
            // two.
            match for_whom {
                For::User => UserRights::current().take_on_for_files()?,
                _ => confine::own_nothing_if_root(),
            }
            die_with(parent)?;
            match for_whom {
                For::Targets => confine::reader(self.filter.as_ref().ok()),
                For::User => confine::reader_of_user(self.filter.as_ref().ok()),
                For::Unpacking => confine::unpacker(self.without_files.as_ref().ok()),
                For::Parsing => confine::parser(self.without_files.as_ref().ok()),
                For::FindingCode => confine::code_finder(self.without_files.as_ref().ok()),
                For::ReadingRecordings => confine::recording_reader(),
            }
            match for_whom {
                For::Parsing | For::FindingCode | For::ReadingRecordings => {
                    parser::serve(socket.into(), self.makers);
                }
                For::Targets | For::User | For::Unpacking => reader::serve(&socket),
            }
            Ok(())
        })
    }

    /// Kills a reader. One that was not reaped keeps its pid, so that no other process can be hit.
    fn kill(&mut self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|pid| self.all.contains(pid)) {
            _ = kill_process(pid, Signal::KILL);
            self.killed.insert(pid);
            self.reap();
        }
    }

    fn reap(&mut self) {
        let is_there = |pid: &Pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None));
        self.all.retain(is_there);
        self.killed.retain(|pid| self.all.contains(pid));
    }

    /// Kills all readers. Those that are stuck are left to the process that adopts orphans.
    fn end(&mut self) {
        for pid in &self.all {
            _ = kill_process(*pid, Signal::KILL);
        }
        let deadline = Instant::now() + LAST_REAP;
        while !self.all.is_empty() && Instant::now() < deadline {
            self.reap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Prepares the spawner: it must hold nothing of the user's, nor may readers that are stuck.
fn begin(orders: &UnixStream, parent: Pid) -> io::Result<()> {
    _ = rustix::thread::set_name(NAME);
    // Its own session: signals of the terminal to proftop must not reach it.
    _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed, the signal is only ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    die_with(parent)?;
    // If the kernel refuses that, readers work with all of proftop's rights.
    _ = confine::spawner();
    {
        let nothing = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        rustix::stdio::dup2_stderr(&nothing)?;
    }
    close_all_but(orders);
    rustix::process::chdir("/")?;
    Ok(())
}

/// Makes this process end with its parent, however the parent ends.
pub fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the parent is gone"))
    }
}

/// Closes the descriptors that a shell left open to proftop.
fn close_all_but(kept: &UnixStream) {
    let kept = kept.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: only standard descriptors and `kept` are used from here on.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

fn close(socket: &UnixStream) {
    // SAFETY: in this process nobody uses it: the child ends without dropping it.
    unsafe { libc::close(socket.as_raw_fd()) };
}

/// Forks; returns the child's pid, and `None` in the child.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, at the beginning of `main`, in the spawner, and where
    // `apart::start` has made sure of it, so that no lock is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Runs a forked process. Nothing that belongs to its parent is unwound or flushed.
fn child(work: impl FnOnce() -> io::Result<()>) -> ! {
    let done = faults::catch("reading files of targets", work);
    let status = i32::from(!matches!(done, Ok(Ok(()))));
    // SAFETY: ends this process; does not return.
    unsafe { libc::_exit(status) }
}
