//! The interface to files for threads: how long they wait, and with whose rights.

use super::answer::{MORE, Waiting};
use super::message::Terms;
use super::parsers::{Parsers, TIME_OF_MEMORY, is_for_everybody, is_program, may_have};
use super::patience::{Patience, PatienceByUser};
use super::pool::{Failed, IDLE_MAX, Pool};
use super::spawner::For;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use symbolize::files::{Order, Proxy, Reply, Request, Work};
use symbolize::packages::is_of_packages;
use symbolize::{Reason, RemoteFiles};

/// Access to files for one thread, or for several that do the same work.
#[derive(Debug)]
pub struct Handle {
    pool: Arc<Pool>,
    parsers: Arc<Parsers>,
    patience: Mutex<Patience>,
    /// Set if no user's processes may delay the work for others.
    by_user: Option<Mutex<PatienceByUser>>,
    /// For parsers of the memory of processes: how long each user's processes may be waited for in
    /// vain.
    of_memory: Mutex<PatienceByUser>,
    for_whom: For,
}

impl Handle {
    /// Returns access with proftop's rights that waits at most `patience` for an answer.
    pub fn new(pool: Arc<Pool>, parsers: Arc<Parsers>, patience: Duration) -> Self {
        Self {
            pool,
            parsers,
            patience: Mutex::new(Patience::new(patience)),
            by_user: None,
            of_memory: Mutex::new(PatienceByUser::new(TIME_OF_MEMORY)),
            for_whom: For::Targets,
        }
    }

    /// Limits how long the processes of one user can delay the work for others, whether they answer
    /// in time or not.
    #[must_use]
    pub fn fair(self, patience: Duration) -> Self {
        let by_user = Some(Mutex::new(PatienceByUser::new(patience)));
        Self { by_user, ..self }
    }

    /// Opens files with the rights of the invoking user.
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

    /// Returns how long to wait for the answer to a request; `None` if it is not sent now, because
    /// the user of the process that it is about has used up the time.
    fn time_for(&self, request: &Request<'_>) -> Option<Duration> {
        let now = Instant::now();
        let time = self.patience().next(now);
        let Some(mut by_user) = self.by_user().filter(|by_user| by_user.is_strained()) else {
            return Some(time);
        };
        match request.pid().and_then(user_of) {
            Some(user) => Some(by_user.next(user, now)?.min(time)),
            None => Some(time),
        }
    }

    /// Whether a parser may wait for the memory of a process now. Not if processes of its user were
    /// waited for in vain for more than their share of the time.
    fn may_wait_for(&self, pid: u32) -> bool {
        let mut of_memory = self.of_memory();
        if !of_memory.is_strained() {
            return true;
        }
        let user = user_of(pid);
        user.is_none_or(|user| of_memory.next(user, Instant::now()).is_some())
    }

    /// Records how long the memory of a process was waited for in vain.
    fn waited_in_vain_for(&self, pid: u32, time: Duration) {
        if PatienceByUser::is_long(time)
            && let Some(user) = user_of(pid)
        {
            self.of_memory().waited(user, time, Instant::now());
        }
    }

    fn of_memory(&self) -> MutexGuard<'_, PatienceByUser> {
        let of_memory = self.of_memory.lock();
        of_memory.unwrap_or_else(PoisonError::into_inner)
    }

    /// Records how long the answer to a request took.
    fn waited(&self, request: &Request<'_>, time: Duration) {
        if let Some(mut by_user) = self.by_user().filter(|_| PatienceByUser::is_long(time))
            && let Some(user) = request.pid().and_then(user_of)
        {
            by_user.waited(user, time, Instant::now());
        }
    }
}

/// Returns the user who started a process, and who may delay what is asked about it. `None` for root,
/// who can do worse.
fn user_of(pid: u32) -> Option<u32> {
    crate::owner::real_uid(pid).filter(|user| *user != 0)
}

impl Handle {
    /// Performs a request of a parser that works on an order: opens an ELF file that the parser may
    /// have, or unpacks what is packed in one. For a recording of the user it may have those that the
    /// user could open, and for packages the files of databases and those that identify the system, of
    /// which the parser has only the root.
    fn perform_for_parser(
        &self,
        request: &Request<'_>,
        terms: &Terms,
        order: &Order<'_>,
    ) -> Result<Reply, Reason> {
        match request {
            // The memory of a process refers to no files.
            _ if order.work == Work::PythonMemory => Err(Reason::Refused),
            Request::Unpack { .. } => self.pool.unpack(request),
            Request::Beneath { path, .. } if order.work == Work::Packages => {
                if !is_of_packages(path) {
                    return Err(Reason::Refused);
                }
                // Databases of distributions are on no file system that waits for a server, and
                // every user may read them.
                let reply = self.perform(request, RemoteFiles::Skip)?;
                let may = reply.file.as_ref().is_some_and(is_for_everybody);
                may.then_some(reply).ok_or(Reason::Refused)
            }
            Request::Beneath { .. } => {
                let is_of_user = order.work == Work::Recordings && self.for_whom == For::User;
                let reply = self.perform(request, terms.remote)?;
                let may = reply.file.as_ref().is_some_and(|file| {
                    is_of_user && is_program(file) || may_have(file, &order.writers)
                });
                may.then_some(reply).ok_or(Reason::Refused)
            }
            _ => Err(Reason::Refused),
        }
    }
}

impl Proxy for Handle {
    fn has_parsers(&self) -> bool {
        true
    }

    fn parse(&self, order: &Order<'_>) -> Option<Result<Reply, Reason>> {
        if order.process.is_some_and(|pid| !self.may_wait_for(pid)) {
            return Some(Err(Reason::Remote));
        }
        let begun = Instant::now();
        let reply = self.parsers.perform(order, &|request, terms| {
            self.perform_for_parser(request, terms, order)
        });
        if let (Some(pid), Err(Reason::Remote)) = (order.process, &reply) {
            self.waited_in_vain_for(pid, begun.elapsed());
        }
        Some(reply)
    }

    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        if let Request::Unpack { .. } = request {
            return self.pool.unpack(request);
        }
        // An idle reader may have been killed from outside; a new one has not been.
        for _ in 0..=IDLE_MAX {
            let time = self.time_for(request).ok_or(Reason::Remote)?;
            let taken = self.pool.take(remote, self.for_whom);
            let (mut reader, terms) = taken.map_err(|_| Reason::Remote)?;
            let begun = Instant::now();
            // A thread that has rings to drain does not wait longer for a CPU than for a server.
            let more = if self.by_user.is_some() {
                Duration::ZERO
            } else {
                MORE
            };
            let answer = reader.ask(request, &terms, Waiting::new(time, more));
            self.waited(request, begun.elapsed());
            match answer {
                Ok((reply, was_at)) => {
                    self.pool.give_back(self.for_whom, reader, was_at);
                    return reply;
                }
                Err(Failed::InTime(was_at)) => {
                    self.pool.give_up(&reader, was_at);
                    // Other users do not get less time because of what one user's processes took.
                    if self.by_user.is_none() || request.pid().and_then(user_of).is_none() {
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
