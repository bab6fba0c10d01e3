//! Files of targets, opened by processes of ours that can be given up.
//!
//! Whoever waits for a file server that is gone waits for ever, and its process cannot
//! end: not even `SIGKILL` helps once the server has read the request. So this process
//! asks no server anything. *Readers* do, one request at a time, and hand over open
//! files and bytes; one that does not answer in time is given up, and what it waited for
//! is avoided from then on. A *spawner* forks them: it was forked itself when there
//! was but one thread, touches no file, and so can always be reached.
//!
//! ```text
//! sampler, naming, … ── Request ──► pool ──► reader ──► file system
//!                    ◄── File ─────      ◄──
//!                                   pool ──► spawner ──► fork: one more reader
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `handle` | what a thread asks by |
//! | `pool` | the readers that are idle |
//! | `patience` | how long that is |
//! | `answer` | waiting for one, longer while its process has no CPU |
//! | `avoided` | what did not answer, and when it is tried again |
//! | `spawner` | the process that forks readers, and kills them |
//! | `reader` | what a reader does |
//! | `parser` | what a process does that understands files |
//! | `parsers` | the same processes from outside |
//! | `message` | a request and its reply as bytes |
//! | `socket` | bytes and descriptors between processes |
//! | `cpu_time` | what readers cost |

mod answer;
mod avoided;
mod cpu_time;
mod handle;
mod message;
mod parser;
mod parsers;
mod patience;
mod pool;
mod reader;
mod socket;
mod spawner;

use crate::confine::{self, Confined};
use crate::privilege::UserRights;
use handle::Handle;
use parser::TableMaker;
use parsers::Parsers;
use pool::Pool;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use symbolize::files::{Proxy, Reply, Request};
use symbolize::{Files, Reason, RemoteFiles};

/// How long anything else is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The sampler has rings to drain, and must be able to end.
const PATIENCE_OF_SAMPLER: Duration = Duration::from_millis(700);

/// The processes that open files, and those that understand them.
#[derive(Debug)]
struct Processes {
    pool: Arc<Pool>,
    parsers: Arc<Parsers>,
}

static PROCESSES: OnceLock<Processes> = OnceLock::new();

/// From now on files are opened by processes of their own, see [`crate::start_readers`].
pub(crate) fn start_readers(make_table: TableMaker) -> io::Result<()> {
    let pool = Arc::new(Pool::new(spawner::start(make_table)?));
    let parsers = Arc::new(Parsers::new(pool.clone()));
    _ = PROCESSES.set(Processes { pool, parsers });
    confine::has_readers();
    Ok(())
}

/// Ends them. Files are out of reach from now on.
pub fn end_readers() {
    if let Some(processes) = PROCESSES.get() {
        processes.pool.end();
    }
}

/// The way to files of targets. Without [`crate::start_readers`] it is taken in the calling
/// thread.
pub fn of_targets() -> Files {
    with_patience(PATIENCE)
}

/// The same with the rights of the invoking user, for paths that a stranger tells.
pub fn of_user() -> Files {
    match handle(PATIENCE) {
        Some(handle) => Files::by(Arc::new(handle.with_user_rights())),
        None => Files::by(Arc::new(HereAsUser)),
    }
}

/// The way to files that the invoking user has named: with that user's rights, wherever they lie,
/// and however long that takes.
pub fn named_by_user() -> Files {
    Files::by(Arc::new(HereAsUser)).with_remote(RemoteFiles::Open)
}

/// The same for work that is done aside: samples wait for its answers, and not for long.
pub(crate) fn for_those_aside() -> Files {
    with_patience(PATIENCE_OF_SAMPLER)
}

/// The same for a thread that is waited for.
pub(crate) fn for_sampler() -> Files {
    match handle(PATIENCE_OF_SAMPLER) {
        Some(handle) => Files::by(Arc::new(handle.fair(PATIENCE_OF_SAMPLER))),
        None => Files::default(),
    }
}

/// How far the readers are confined, by what the kernel says of one; `None` if there are no
/// readers, or it cannot be seen.
pub fn confined() -> Option<Confined> {
    PROCESSES.get()?.pool.confined()
}

/// The CPU time that readers have used.
pub fn cpu_time() -> Duration {
    let processes = PROCESSES.get();
    processes.map_or(Duration::ZERO, |processes| processes.pool.cpu_time())
}

/// The memory that readers and parsers have for themselves, in bytes.
pub fn memory_bytes() -> u64 {
    let processes = PROCESSES.get();
    processes.map_or(0, |processes| processes.pool.memory_bytes())
}

/// What has not answered, in sentences.
pub fn notes() -> Vec<String> {
    let Some(Processes { pool, parsers }) = PROCESSES.get() else {
        return Vec::new();
    };
    let mut notes = pool.notes();
    notes.extend(parsers.note());
    notes
}

/// The user's rights without readers.
#[derive(Debug)]
struct HereAsUser;

impl Proxy for HereAsUser {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        let here = Files::from(remote);
        let done = UserRights::current().run(|| Ok(here.perform(request)));
        done.unwrap_or(Err(Reason::NoPermission))
    }
}

fn with_patience(patience: Duration) -> Files {
    match handle(patience) {
        Some(handle) => Files::by(Arc::new(handle)),
        None => Files::default(),
    }
}

fn handle(patience: Duration) -> Option<Handle> {
    let Processes { pool, parsers } = PROCESSES.get()?;
    Some(Handle::new(pool.clone(), parsers.clone(), patience))
}
