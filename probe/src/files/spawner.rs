//! The process that forks readers and kills them. It opens nothing and asks nobody, so
//! that it never waits for anything but orders.

use super::answer::{MORE, Waiting};
use super::parser::{self, TableMaker};
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

/// What the spawner and readers are called.
const NAME: &std::ffi::CStr = c"proftop-files";

/// What those are called that have no rights.
const NAME_WITHOUT_RIGHTS: &std::ffi::CStr = c"proftop-parser";

/// An answer to an order takes a fork.
const ANSWER: Duration = Duration::from_secs(1);

/// How often it is looked whether those killed have ended: they may be stuck for good.
const REAP: Duration = Duration::from_secs(1);

/// How long it is waited for at the end.
const LAST_REAP: Duration = Duration::from_millis(100);

/// No process has these numbers.
const SPAWN: u32 = 0;
const SPAWN_FOR_USER: u32 = u32::MAX - 1;
const SPAWN_UNPACKING: u32 = u32::MAX - 2;
const SPAWN_PARSING: u32 = u32::MAX - 3;
const END: u32 = u32::MAX;

/// With whose rights a reader opens files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Ours, as far as they are for reading.
    Targets,
    /// Those of the invoking user.
    User,
    /// It opens none: it unpacks what it is given, once.
    Unpacking,
    /// The same, but that it understands files, one after the other.
    Parsing,
}

/// The other end of the spawner.
#[derive(Debug)]
pub struct Spawner {
    socket: UnixStream,
    inbox: Inbox,
    pid: Pid,
    /// Answers that were given up, and are still to come.
    late: u32,
}

/// A reader that was just forked.
#[derive(Debug)]
pub struct Spawned {
    pub socket: UnixStream,
    pub pid: u32,
    /// Readers that were killed and have not ended.
    pub stuck: u32,
}

/// Forks the spawner.
pub fn start(make_table: TableMaker) -> io::Result<Spawner> {
    // Found out here once, and known to all that are forked: they start no programs.
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
            // It can be relied upon from here on.
            send(&theirs, b"ready", &[])?;
            apply(&theirs, make_table);
            Ok(())
        }),
    }
}

impl Spawner {
    /// One more reader.
    pub fn spawn(&mut self, for_whom: For) -> io::Result<Spawned> {
        let (ours, theirs) = UnixStream::pair()?;
        let order = match for_whom {
            For::Targets => SPAWN,
            For::User => SPAWN_FOR_USER,
            For::Unpacking => SPAWN_UNPACKING,
            For::Parsing => SPAWN_PARSING,
        };
        send(&self.socket, &order.to_le_bytes(), &[theirs.as_fd()])?;
        self.late += 1;
        // Of a reader whose answer was given up the other end of its socket is closed: it ends.
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

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().cast_unsigned()
    }

    /// Ends a reader, whatever it is doing, as soon as the kernel allows it.
    pub fn kill(&self, pid: u32) {
        // A spawner that is gone has taken its readers along.
        _ = send(&self.socket, &pid.to_le_bytes(), &[]);
    }

    /// Ends it, and with it all readers, and waits a moment for that: whoever takes in
    /// orphans may never look at them.
    pub fn end(&self) {
        _ = send(&self.socket, &END.to_le_bytes(), &[]);
        let deadline = Instant::now() + 2 * LAST_REAP;
        let is_there = || matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None));
        while is_there() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The readers that were forked, as their parent knows them.
#[derive(Debug)]
struct Readers {
    /// What they may ask of the kernel; an error where it can keep them from nothing.
    filter: io::Result<Filter>,
    /// The same of those that open no files.
    without_files: io::Result<Filter>,
    /// Whose death was not seen yet.
    all: HashSet<Pid>,
    killed: HashSet<Pid>,
    make_table: TableMaker,
}

/// Runs until the other end says that it is over, or is closed. An order is the pid of a
/// reader to kill, or one of the numbers above.
fn apply(orders: &UnixStream, make_table: TableMaker) {
    let mut inbox = Inbox::default();
    let mut readers = Readers {
        filter: Filter::of_reader(),
        without_files: Filter::without_files(),
        all: HashSet::new(),
        killed: HashSet::new(),
        make_table,
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
            Some(order @ (SPAWN | SPAWN_FOR_USER | SPAWN_UNPACKING | SPAWN_PARSING)) => {
                let for_whom = match order {
                    SPAWN => For::Targets,
                    SPAWN_UNPACKING => For::Unpacking,
                    SPAWN_PARSING => For::Parsing,
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
            if matches!(for_whom, For::Unpacking | For::Parsing) {
                confine::be_ended_first();
                _ = rustix::thread::set_name(NAME_WITHOUT_RIGHTS);
            }
            // The kernel forgets the signal for a parent's death (`die_with`) when a process
            // changes its user, and the filter refuses to ask for it again: so it is asked
            // for between the two.
            match for_whom {
                For::Targets | For::Unpacking | For::Parsing => confine::own_nothing_if_root(),
                For::User => UserRights::current().take_on_for_files()?,
            }
            die_with(parent)?;
            match for_whom {
                For::Targets => confine::reader(self.filter.as_ref().ok()),
                For::User => confine::reader_of_user(self.filter.as_ref().ok()),
                For::Unpacking => confine::unpacker(self.without_files.as_ref().ok()),
                For::Parsing => confine::parser(self.without_files.as_ref().ok()),
            }
            match for_whom {
                For::Parsing => parser::serve(socket.into(), self.make_table),
                For::Targets | For::User | For::Unpacking => reader::serve(&socket),
            }
            Ok(())
        })
    }

    /// One that has not been waited for keeps its pid.
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

    /// Those that are stuck are left to whoever takes in orphans.
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

/// What the spawner does first: nothing of the user's may be held by it, or by readers
/// that are stuck.
fn begin(orders: &UnixStream, parent: Pid) -> io::Result<()> {
    _ = rustix::thread::set_name(NAME);
    // Its own session: what the terminal says to us is not for it.
    _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed, the signal is only ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    die_with(parent)?;
    // Where the kernel refuses that, readers work with the rights that we have.
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

/// However the parent ends, this process ends with it.
fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the parent is gone"))
    }
}

/// Descriptors that a shell left open to us.
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

/// The child's pid; `None` in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, at the beginning of `main` and in the spawner, so that
    // no lock is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Runs a forked process. What belongs to its parent is neither unwound nor flushed.
fn child(work: impl FnOnce() -> io::Result<()>) -> ! {
    let done = faults::catch("reading files of targets", work);
    let status = i32::from(!matches!(done, Ok(Ok(()))));
    // SAFETY: ends this process; does not return.
    unsafe { libc::_exit(status) }
}
