//! The queue of requests for the naming workers. The time of a request is charged to the user who
//! controls the file, so that no user's files can block the names of others.
//!
//! A file of a hostile user may take long to read. So files of one user, except root's, keep at
//! most one worker busy, and of the waiting users the one whose files took least time lately is
//! next.

use super::Request;
use probe::shares::FairQueue;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of waiting requests; the model limits its requests, so this is never reached.
const WAITING_MAX: usize = 1 << 20;

/// The user whose files all workers may read at once if no others wait: root.
const TRUSTED: u32 = 0;

/// The queue, shared by all workers.
#[derive(Debug)]
pub struct Requests {
    state: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Debug)]
struct QueueState {
    /// Requests by user; a user whose files took much time lately comes later.
    waiting: FairQueue<Request>,
    /// Number of workers that are busy with each user's files.
    busy: HashMap<u32, usize>,
    is_closed: bool,
}

impl Requests {
    /// Starts with an empty queue.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                waiting: FairQueue::new(WAITING_MAX),
                busy: HashMap::new(),
                is_closed: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// Adds a request, unless there are too many.
    pub fn add(&self, request: Request) {
        // A request that is not taken stays pending.
        self.state().waiting.push(request.module.user, request);
        self.wake.notify_one();
    }

    /// Makes the workers end when they next look.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.wake.notify_all();
    }

    /// Waits for a request; `None` at the end.
    pub fn next(&self) -> Option<Request> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let QueueState { waiting, busy, .. } = &mut *state;
            // One worker is left for others.
            let may = |user| user == TRUSTED || !busy.contains_key(&user);
            if let Some((user, request)) = waiting.pop(may, Instant::now()) {
                *busy.entry(user).or_default() += 1;
                return Some(request);
            }
            let waited = self.wake.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a worker has finished a request of a user, and how long it took.
    pub fn done(&self, user: u32, time: Duration) {
        let mut state = self.state();
        if let Some(workers) = state.busy.get_mut(&user) {
            *workers -= 1;
            if *workers == 0 {
                state.busy.remove(&user);
            }
        }
        state.waiting.took(user, time, Instant::now());
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::NamedModule;
    use probe::{Module, ModuleId, ModuleKind};
    use std::sync::Arc;

    fn request(user: u32) -> Request {
        let module = Module {
            id: ModuleId(user),
            kind: ModuleKind::Vsyscall,
            user,
        };
        Request {
            module: Arc::new(NamedModule::new(&module)),
            frames: Vec::new(),
            again: false,
        }
    }

    #[test]
    fn files_of_one_user_keep_one_worker_busy_and_the_slow_come_last() {
        let requests = Requests::new();
        let next = || requests.next().map(|request| request.module.user);
        for user in [7, 7, 7, 8, 8] {
            requests.add(request(user));
        }
        // Two workers at once.
        assert_eq!([next(), next()], [Some(7), Some(8)]);
        requests.done(7, Duration::from_secs(1));
        requests.done(8, Duration::from_millis(1));
        assert_eq!([next(), next()], [Some(8), Some(7)]);
        // When the first one is finished, only the same user is left.
        requests.done(7, Duration::from_secs(1));
        assert_eq!(next(), Some(7));
        for _ in 0..2 {
            requests.add(request(TRUSTED));
        }
        assert_eq!([next(), next()], [Some(TRUSTED); 2]);
        requests.close();
        assert_eq!(next(), None);
    }
}
