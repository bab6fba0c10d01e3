//! The readers, from outside: asked, waited for, given up.

use super::avoided::Avoided;
use super::message::{Terms, Word, read_word, write_request};
use super::patience::Patience;
use super::socket::{Inbox, send};
use super::spawner::Spawner;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Proxy, Reply, Request};
use symbolize::opener::Place;
use symbolize::{Reason, RemoteFiles};

/// Readers that wait for the next request; more are asked for only at once.
const IDLE_MAX: usize = 2;

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
    idle: Vec<Reader>,
    avoided: Avoided,
    /// That were killed and have not ended, when a reader was last forked.
    stuck: u32,
}

#[derive(Debug)]
struct Reader {
    socket: UnixStream,
    inbox: Inbox,
    pid: u32,
}

/// What one thread, or several that do the same, ask by.
#[derive(Debug)]
pub struct Handle {
    pool: Arc<Pool>,
    patience: Mutex<Patience>,
    as_user: bool,
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
        Self {
            state: Mutex::new(State {
                spawner,
                idle: Vec::new(),
                avoided: Avoided::default(),
                stuck: 0,
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
        state.avoided.all().map(sentence).collect()
    }

    /// No more requests: the readers end.
    pub fn end(&self) {
        self.state().spawner.end();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader, and on which terms it is sent.
    fn take(&self, remote: RemoteFiles, as_user: bool) -> io::Result<(Reader, Terms)> {
        let mut state = self.state();
        let reader = match state.idle.pop() {
            Some(reader) => reader,
            None => state.spawn()?,
        };
        let terms = Terms {
            remote,
            as_user,
            is_careful: state.stuck >= STUCK_CAREFUL,
            avoided: state.avoided.at(Instant::now()).collect(),
        };
        Ok((reader, terms))
    }

    fn give_back(&self, reader: Reader, was_at: Option<Place>) {
        let mut state = self.state();
        if let Some(place) = was_at {
            state.avoided.remove(place);
        }
        if state.idle.len() < IDLE_MAX {
            state.idle.push(reader);
        } else {
            state.spawner.kill(reader.pid);
        }
    }

    fn give_up(&self, reader: &Reader, was_at: Option<Place>) {
        let mut state = self.state();
        state.spawner.kill(reader.pid);
        if let Some(place) = was_at {
            state.avoided.add(place, Instant::now());
        }
    }
}

impl State {
    fn spawn(&mut self) -> io::Result<Reader> {
        let spawned = self.spawner.spawn()?;
        self.stuck = spawned.stuck;
        if self.stuck >= STUCK_MAX {
            self.spawner.kill(spawned.pid);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Reader {
            socket: spawned.socket,
            inbox: Inbox::default(),
            pid: spawned.pid,
        })
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
        let mut was_at = None;
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
            as_user: false,
        }
    }

    /// With the rights of the invoking user.
    #[must_use]
    pub fn with_user_rights(self) -> Self {
        let as_user = true;
        Self { as_user, ..self }
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy for Handle {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        // An idle reader may have been killed by somebody; a new one was not.
        for _ in 0..=IDLE_MAX {
            let taken = self.pool.take(remote, self.as_user);
            let (mut reader, terms) = taken.map_err(|_| Reason::Remote)?;
            let time = self.patience().next(Instant::now());
            match reader.ask(request, &terms, time) {
                Ok((reply, was_at)) => {
                    self.pool.give_back(reader, was_at);
                    return reply;
                }
                Err(Failed::InTime(was_at)) => {
                    self.pool.give_up(&reader, was_at);
                    self.patience().waited_in_vain(time);
                    return Err(Reason::Remote);
                }
                Err(Failed::Gone) => self.pool.give_up(&reader, None),
            }
        }
        Err(Reason::Remote)
    }
}
