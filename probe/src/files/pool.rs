//! The readers, from outside: asked, waited for, given up.

use super::avoided::Avoided;
use super::cpu_time::CpuTimes;
use super::message::{Terms, Word, read_word, write_request};
use super::patience::{Patience, PatienceByUser};
use super::socket::{Inbox, send};
use super::spawner::{For, Spawner};
use crate::confine::Confined;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Proxy, Reply, Request};
use symbolize::opener::Place;
use symbolize::{Reason, RemoteFiles};

/// Readers of a kind that wait for the next request; more are asked for only at once.
const IDLE_MAX: usize = 2;

/// Unpacking is work, and waits for nobody.
const UNPACKING: Duration = Duration::from_secs(30);

/// From so many that do not end on, nobody new is sent where it is not known to be safe,
const STUCK_CAREFUL: u32 = 8;

/// and from so many on nobody is sent at all.
const STUCK_MAX: u32 = 32;

/// All readers.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    spawner: Spawner,
    /// Readers that wait for a request. Each answers only those of its kind ([`For`]): with our
    /// rights, or with the user's.
    idle: Vec<Reader>,
    avoided: Avoided,
    /// What could not be unpacked.
    packed: u64,
    /// That were killed and have not ended, when a reader was last forked.
    stuck: u32,
    cpu: CpuTimes,
}

#[derive(Debug)]
struct Reader {
    socket: UnixStream,
    inbox: Inbox,
    pid: u32,
    for_whom: For,
}

/// What one thread, or several that do the same, ask by.
#[derive(Debug)]
pub struct Handle {
    pool: Arc<Pool>,
    patience: Mutex<Patience>,
    /// Where no user's processes may hold up the work for others.
    by_user: Option<Mutex<PatienceByUser>>,
    for_whom: For,
}

/// How asking a reader failed.
enum Failed {
    /// It has not answered, and was there.
    InTime(Option<Place>),
    /// It is gone: killed by somebody, or by the request.
    Gone,
}

impl Pool {
    pub fn new(spawner: Spawner) -> Self {
        let mut cpu = CpuTimes::default();
        cpu.add(spawner.pid());
        Self {
            state: Mutex::new(State {
                spawner,
                idle: Vec::new(),
                avoided: Avoided::default(),
                packed: 0,
                stuck: 0,
                cpu,
            }),
        }
    }

    pub fn notes(&self) -> Vec<String> {
        let state = self.state();
        let sentence = |place| match place {
            Place::FileSystem(major, minor) => format!(
                "the file system with device {major}:{minor} does not answer: what is on it has no names"
            ),
            Place::Process(pid) => {
                format!("the memory of process {pid} could not be read in time")
            }
        };
        let packed = (state.packed > 0).then(|| {
            format!(
                "{} compressed symbol tables were left alone: damaged, larger than 64 MB, or out of memory",
                state.packed
            )
        });
        state.avoided.all().map(sentence).chain(packed).collect()
    }

    /// How far a reader is confined; `None` if there can be none, or it cannot be seen.
    pub fn confined(&self) -> Option<Confined> {
        let (mut reader, terms) = self.take(RemoteFiles::Skip, For::Targets).ok()?;
        // One that answers is confined: that is what it does first.
        let pid = std::process::id();
        let request = Request::CommandLine { pid };
        if reader
            .ask(&request, &terms, Duration::from_secs(1))
            .is_err()
        {
            self.give_up(&reader, None);
            return None;
        }
        let seen = Confined::of(reader.pid);
        self.give_back(reader, None);
        seen.ok()
    }

    /// The CPU time of the readers and of the process that forks them.
    pub fn cpu_time(&self) -> Duration {
        let mut state = self.state();
        state.cpu.sum()
    }

    /// No more requests: the readers end.
    pub fn end(&self) {
        self.state().spawner.end();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader, and on which terms it is sent.
    fn take(&self, remote: RemoteFiles, for_whom: For) -> io::Result<(Reader, Terms)> {
        let mut state = self.state();
        let is_it = |reader: &Reader| reader.for_whom == for_whom;
        let reader = match state.idle.iter().rposition(is_it) {
            Some(place) => state.idle.remove(place),
            None => state.spawn(for_whom)?,
        };
        let terms = Terms {
            remote,
            is_careful: state.stuck >= STUCK_CAREFUL,
            avoided: state.avoided.at(Instant::now()).collect(),
        };
        Ok((reader, terms))
    }

    fn unpack(&self, request: &Request<'_>) -> Result<Reply, Reason> {
        let taken = self.take(RemoteFiles::Skip, For::Unpacking);
        let (mut unpacker, terms) = taken.map_err(|_| Reason::Refused)?;
        match unpacker.ask(request, &terms, UNPACKING) {
            Ok((reply, _)) => {
                self.give_back(unpacker, None);
                reply
            }
            Err(_) => {
                self.give_up(&unpacker, None);
                Err(Reason::Refused)
            }
        }
    }

    fn give_back(&self, reader: Reader, was_at: Option<Place>) {
        if reader.for_whom == For::Unpacking {
            // What one stranger left in it is not there for the next.
            return self.state().kill(reader.pid);
        }
        let mut state = self.state();
        if let Some(place) = was_at {
            state.avoided.remove(place);
        }
        let of_this_kind = |idle: &&Reader| idle.for_whom == reader.for_whom;
        if state.idle.iter().filter(of_this_kind).count() < IDLE_MAX {
            state.idle.push(reader);
        } else {
            state.kill(reader.pid);
        }
    }

    fn give_up(&self, reader: &Reader, was_at: Option<Place>) {
        let mut state = self.state();
        state.kill(reader.pid);
        if let Some(place) = was_at {
            state.avoided.add(place, Instant::now());
        }
    }
}

impl State {
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
            for_whom,
        })
    }

    fn kill(&mut self, pid: u32) {
        self.cpu.end(pid);
        self.spawner.kill(pid);
    }
}

impl Reader {
    fn ask(
        &mut self,
        request: &Request<'_>,
        terms: &Terms,
        time: Duration,
    ) -> Result<(Result<Reply, Reason>, Option<Place>), Failed> {
        let (message, files) = write_request(request, terms);
        send(&self.socket, &message, &files).map_err(|_| Failed::Gone)?;
        let deadline = Instant::now() + time;
        let mut was_at = request.waits_at_first();
        loop {
            let (word, files) = match self.inbox.receive(&self.socket, Some(deadline)) {
                Ok(word) => word,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Failed::InTime(was_at));
                }
                Err(_) => return Err(Failed::Gone),
            };
            match read_word(word, files) {
                Some(Word::Entering(place)) => was_at = Some(place),
                Some(Word::Done(reply)) => return Ok((reply, was_at)),
                None => return Err(Failed::Gone),
            }
        }
    }
}

impl Handle {
    pub fn new(pool: Arc<Pool>, patience: Duration) -> Self {
        Self {
            pool,
            patience: Mutex::new(Patience::new(patience)),
            by_user: None,
            for_whom: For::Targets,
        }
    }

    /// Where no user's processes may hold up the work for others, whether they answer in
    /// time or not.
    #[must_use]
    pub fn fair(self, patience: Duration) -> Self {
        let by_user = Some(Mutex::new(PatienceByUser::new(patience)));
        Self { by_user, ..self }
    }

    /// With the rights of the invoking user.
    #[must_use]
    pub fn with_user_rights(self) -> Self {
        let for_whom = For::User;
        Self { for_whom, ..self }
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by_user(&self) -> Option<MutexGuard<'_, PatienceByUser>> {
        let by_user = self.by_user.as_ref()?;
        Some(by_user.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long the answer to a request may take; `None` if it is not waited for, because
    /// of the user whose process it is about.
    fn time_for(&self, request: &Request<'_>) -> Option<Duration> {
        let now = Instant::now();
        let time = self.patience().next(now);
        let Some(mut by_user) = self.by_user().filter(|by_user| by_user.is_strained()) else {
            return Some(time);
        };
        match user_of(request) {
            Some(user) => Some(by_user.next(user, now)?.min(time)),
            None => Some(time),
        }
    }

    /// So long was waited for the answer to a request.
    fn waited(&self, request: &Request<'_>, time: Duration) {
        if let Some(mut by_user) = { self.by_user() }.filter(|_| PatienceByUser::is_long(time))
            && let Some(user) = user_of(request)
        {
            by_user.waited(user, time, Instant::now());
        }
    }
}

/// Who started the process that a request is about, and may hold it up; `None` for root, who
/// can do worse, and for what is about no process.
fn user_of(request: &Request<'_>) -> Option<u32> {
    crate::owner::real_uid(request.pid()?).filter(|user| *user != 0)
}

impl Handle {
    /// Has something unpacked by a process of its own, once: if that process is ended, by a
    /// limit or for lack of memory, the next one would be as well.
    fn unpack(&self, request: &Request<'_>) -> Result<Reply, Reason> {
        let unpacked = self.pool.unpack(request);
        if unpacked.is_err() {
            self.pool.state().packed += 1;
        }
        unpacked
    }
}

impl Proxy for Handle {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        if let Request::Unpack { .. } = request {
            return self.unpack(request);
        }
        // An idle reader may have been killed by somebody; a new one was not.
        for _ in 0..=IDLE_MAX {
            let time = self.time_for(request).ok_or(Reason::Remote)?;
            let taken = self.pool.take(remote, self.for_whom);
            let (mut reader, terms) = taken.map_err(|_| Reason::Remote)?;
            let begun = Instant::now();
            let answer = reader.ask(request, &terms, time);
            self.waited(request, begun.elapsed());
            match answer {
                Ok((reply, was_at)) => {
                    self.pool.give_back(reader, was_at);
                    return reply;
                }
                Err(Failed::InTime(was_at)) => {
                    self.pool.give_up(&reader, was_at);
                    // Others are not given less time for what one user's processes took.
                    if self.by_user.is_none() || user_of(request).is_none() {
                        self.patience().waited_in_vain(time);
                    }
                    return Err(Reason::Remote);
                }
                Err(Failed::Gone) => self.pool.give_up(&reader, None),
            }
        }
        Err(Reason::Remote)
    }
}
