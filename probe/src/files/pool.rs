//! Reader processes from outside: sends requests, waits for answers, abandons readers.

use super::answer::{MORE, NoAnswer, Waiting};
use super::avoided::Avoided;
use super::cpu_time::CpuTimes;
use super::message::{Terms, Word, read_word, write_request};
use super::socket::{Inbox, send};
use super::spawner::{For, Spawner};
use crate::confine::Confined;
use crate::memory;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Reply, Request};
use symbolize::opener::Blocker;
use symbolize::{Reason, RemoteFiles};

/// Maximum number of idle readers of each kind; more exist only while there are more requests at
/// once.
pub const IDLE_MAX: usize = 2;

/// How long to wait for unpacking, which needs CPU time and waits for nothing.
const UNPACKING: Duration = Duration::from_secs(30);

/// How long to wait for a reader that is started only to see how it is confined.
const CONFINED: Duration = Duration::from_secs(1);

/// From this number of words about one request on, the deadline holds even while further words
/// come: a reader that was taken over could talk for ever.
const WORDS_MAX: usize = 64;

/// From this number of readers that do not end on, file systems that are not known to be safe are
/// not accessed.
const STUCK_CAREFUL: u32 = 8;

/// From this number of readers that do not end on, no file is accessed at all.
const STUCK_MAX: u32 = 32;

/// All reader processes.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    spawner: Spawner,
    /// Readers that wait for a request. Each answers only requests of its kind: with proftop's
    /// rights, or with the user's.
    idle: Vec<(For, Reader)>,
    avoided: Avoided,
    /// Number of files that could not be unpacked.
    packed: u64,
    /// Number of readers that were killed and had not ended, when a reader was last forked.
    stuck: u32,
    cpu: CpuTimes,
}

/// A reader or parser process, and the socket to it.
#[derive(Debug)]
pub struct Reader {
    /// proftop's end of the socket.
    pub socket: UnixStream,
    /// What was received and not yet taken.
    pub inbox: Inbox,
    /// The process number of the reader.
    pub pid: u32,
}

/// The ways in which a request to a reader can fail.
pub enum Failed {
    /// It has not answered in time while it was at this place; `None` if it had no CPU: then the
    /// place is not to blame.
    InTime(Option<Blocker>),
    /// It has ended: killed from outside, or by the request.
    Gone,
}

impl Pool {
    /// Starts without readers; `spawner` forks them when needed.
    pub fn new(spawner: Spawner) -> Self {
        let mut cpu = CpuTimes::default();
        cpu.add(spawner.pid());
        Self {
            state: Mutex::new(PoolState {
                spawner,
                idle: Vec::new(),
                avoided: Avoided::default(),
                packed: 0,
                stuck: 0,
                cpu,
            }),
        }
    }

    /// Ends all readers. From now on, those of this spawner are used.
    pub fn replace(&self, spawner: Spawner) {
        let mut state = self.state();
        state.spawner.end();
        state.idle.clear();
        state.cpu.add(spawner.pid());
        state.spawner = spawner;
    }

    /// Returns sentences about what did not answer or could not be unpacked.
    pub fn notes(&self) -> Vec<String> {
        let state = self.state();
        let packed = (state.packed > 0).then(|| {
            format!(
                "{} compressed symbol tables were left alone: damaged, larger than 64 MB, or out of memory",
                state.packed
            )
        });
        state.avoided.notes().into_iter().chain(packed).collect()
    }

    /// Returns how far a reader is confined; `None` if there can be no reader, or it cannot be
    /// read.
    pub fn confined(&self) -> Option<Confined> {
        let (mut reader, terms) = self.take(RemoteFiles::Skip, For::Targets).ok()?;
        // A reader that answers is confined, as it confines itself first.
        let pid = std::process::id();
        let request = Request::CommandLine { pid };
        if reader
            .ask(&request, &terms, Waiting::new(CONFINED, MORE))
            .is_err()
        {
            self.end_one(reader.pid);
            return None;
        }
        let seen = Confined::of(reader.pid);
        self.give_back(For::Targets, reader, None);
        seen.ok()
    }

    /// Returns the CPU time of the readers and of the process that forks them.
    pub fn cpu_time(&self) -> Duration {
        let mut state = self.state();
        state.cpu.sum()
    }

    /// Returns the private memory of all of them, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let state = self.state();
        let each = state.cpu.pids().map(memory::own_bytes_of);
        each.sum()
    }

    /// Ends the readers; there will be no more requests.
    pub fn end(&self) {
        self.state().spawner.end();
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle or new reader, and the terms of its next request.
    pub fn take(&self, remote: RemoteFiles, for_whom: For) -> io::Result<(Reader, Terms)> {
        let mut state = self.state();
        let is_it = |(its, _): &(For, Reader)| *its == for_whom;
        let reader = match state.idle.iter().rposition(is_it) {
            Some(place) => state.idle.remove(place).1,
            None => state.spawn(for_whom)?,
        };
        let terms = Terms {
            remote,
            is_careful: state.stuck >= STUCK_CAREFUL,
            avoided: state.avoided.at(Instant::now()).collect(),
        };
        Ok((reader, terms))
    }

    /// Forks one more process, for other work than that of a reader.
    pub fn spawn(&self, for_whom: For) -> io::Result<Reader> {
        self.state().spawn(for_whom)
    }

    /// Whether a place has not answered, and must not be tried now.
    pub fn avoids(&self, place: Blocker) -> bool {
        let state = self.state();
        state.avoided.at(Instant::now()).any(|other| other == place)
    }

    /// Records that a place has answered.
    pub fn has_answered(&self, place: Blocker) {
        self.state().avoided.remove(place);
    }

    /// Ends a reader or parser.
    pub fn end_one(&self, pid: u32) {
        self.state().kill(pid);
    }

    /// Unpacks something in a process of its own, in one attempt: if that process is ended, by a
    /// limit or for lack of memory, the next one would be as well. The process is not used again,
    /// so that untrusted data cannot affect the next file.
    pub fn unpack(&self, request: &Request<'_>) -> Result<Reply, Reason> {
        let unpacked = self.unpack_once(request);
        if unpacked.is_err() {
            self.state().packed += 1;
        }
        unpacked
    }

    fn unpack_once(&self, request: &Request<'_>) -> Result<Reply, Reason> {
        let taken = self.take(RemoteFiles::Skip, For::Unpacking);
        let (mut unpacker, terms) = taken.map_err(|_| Reason::Refused)?;
        let time = Waiting::new(UNPACKING, MORE);
        let answer = unpacker.ask(request, &terms, time);
        self.end_one(unpacker.pid);
        answer.map_or(Err(Reason::Refused), |(reply, _)| reply)
    }

    /// Takes back a reader that has answered; it is ended if there are enough idle ones.
    pub fn give_back(&self, for_whom: For, reader: Reader, was_at: Option<Blocker>) {
        let mut state = self.state();
        if let Some(place) = was_at {
            state.avoided.remove(place);
        }
        let of_this_kind = |(its, _): &&(For, Reader)| *its == for_whom;
        if state.idle.iter().filter(of_this_kind).count() < IDLE_MAX {
            state.idle.push((for_whom, reader));
        } else {
            state.kill(reader.pid);
        }
    }

    /// Ends a reader that has not answered, and avoids the place where it was.
    pub fn give_up(&self, reader: &Reader, was_at: Option<Blocker>) {
        let mut state = self.state();
        state.kill(reader.pid);
        if let Some(place) = was_at {
            state.avoided.add(place, Instant::now());
        }
    }
}

impl PoolState {
    fn spawn(&mut self, for_whom: For) -> io::Result<Reader> {
        let spawned = self.spawner.spawn(for_whom)?;
        self.stuck = spawned.stuck;
        self.cpu.add(spawned.pid);
        if self.stuck >= STUCK_MAX {
            self.kill(spawned.pid);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Reader {
            socket: spawned.socket,
            inbox: Inbox::default(),
            pid: spawned.pid,
        })
    }

    fn kill(&mut self, pid: u32) {
        self.cpu.end(pid);
        self.spawner.kill(pid);
    }
}

impl Reader {
    /// Sends a request to a reader, and waits for the answer within that time.
    pub fn ask(
        &mut self,
        request: &Request<'_>,
        terms: &Terms,
        mut time: Waiting,
    ) -> Result<(Result<Reply, Reason>, Option<Blocker>), Failed> {
        let (message, files) = write_request(request, terms);
        send(&self.socket, &message, &files).map_err(|_| Failed::Gone)?;
        let mut was_at = request.waits_at_first();
        for said in 0.. {
            if said > WORDS_MAX && time.is_over() {
                break;
            }
            let (word, files) = match time.receive(&mut self.inbox, &self.socket, self.pid) {
                Ok(word) => word,
                Err(NoAnswer::Silent) => return Err(Failed::InTime(was_at)),
                Err(NoAnswer::Starved) => return Err(Failed::InTime(None)),
                Err(NoAnswer::Gone) => return Err(Failed::Gone),
            };
            match read_word(word, files) {
                Some(Word::Entering(place)) => was_at = Some(place),
                Some(Word::Done(reply)) => return Ok((reply, was_at)),
                Some(Word::Mistaken(fault)) => faults::note(&fault),
                Some(Word::Asking(..)) | None => return Err(Failed::Gone),
            }
        }
        Err(Failed::InTime(None))
    }
}
