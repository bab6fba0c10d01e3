//! Files of targets, opened by processes of ours that can be abandoned.
//!
//! A process that waits for a file server that is gone waits for ever and cannot end: not even
//! `SIGKILL` helps once the server has read the request. So this process contacts no server itself.
//! *Readers* do, one request at a time, and pass back open files and bytes. A reader that does not
//! answer in time is abandoned, and what it waited for is avoided from then on. A *spawner* forks
//! them: it was forked itself when there was only one thread, accesses no file, and so never
//! blocks.
//!
//! ```text
//! sampler, naming, … ── Request ──► pool ──► reader ──► file system
//!                    ◄── File ─────      ◄──
//!                                   pool ──► spawner ──► fork: one more reader
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `handle` | the interface for threads |
//! | `pool` | the idle readers |
//! | `patience` | how long to wait for an answer |
//! | `answer` | waits for an answer, longer while the reader gets no CPU time |
//! | `avoided` | what did not answer, and when it is tried again |
//! | `spawner` | the process that forks readers, and kills them |
//! | `reader` | the code of a reader process |
//! | `parser` | the code of a parser process |
//! | `parsers` | parser processes seen from outside |
//! | `apart` | a process without rights for one command |
//! | `message` | encoding of requests and replies |
//! | `mistakes` | reports the faults of a reader or parser |
//! | `socket` | transfers bytes and descriptors between processes |
//! | `cpu_time` | CPU time of readers |

mod answer;
pub mod apart;
mod avoided;
mod cpu_time;
mod handle;
mod message;
mod mistakes;
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
use parser::Giver;
pub use parser::Maker;
pub(crate) use parser::Makers;
use parsers::Parsers;
use pool::Pool;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use symbolize::files::{Proxy, Reply, Request};
use symbolize::{Files, Reason, RemoteFiles};

/// How long to wait for a request of any other thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait for a request of the sampler, which has to read its rings, and must be able to
/// end.
const PATIENCE_OF_SAMPLER: Duration = Duration::from_millis(700);

/// The reader and parser processes.
#[derive(Debug)]
struct Processes {
    pool: Arc<Pool>,
    parsers: Arc<Parsers>,
    makers: Makers,
}

static PROCESSES: OnceLock<Processes> = OnceLock::new();

/// In a process without rights, a parser or one for a command ([`apart`]): the process that opens
/// files for it.
static GIVER: OnceLock<Arc<Giver>> = OnceLock::new();

/// Starts the processes that open files from now on, see [`crate::start_readers`].
pub(crate) fn start_readers(makers: Makers) -> io::Result<()> {
    let pool = Arc::new(Pool::new(spawner::start(makers)?));
    let parsers = Arc::new(Parsers::new(pool.clone()));
    _ = PROCESSES.set(Processes {
        pool,
        parsers,
        makers,
    });
    confine::has_readers();
    Ok(())
}

/// With whose rights files are opened for a process that has become the invoking user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// With those of the user.
    LikeUser,
    /// With those that proftop was given, by the processes that read files of targets.
    LikeBefore,
}

/// Makes this process that of the invoking user for good, see [`confine::process_of_user`]. Must be
/// called while there is one thread.
pub fn become_user(opening: Opening) -> io::Result<()> {
    let is_user = confine::process_of_user()?;
    if is_user && opening == Opening::LikeUser {
        restart_readers()?;
    }
    Ok(())
}

/// Starts the processes that open files anew, with the rights that this one has now. Must be called
/// while there is one thread. Without [`crate::start_readers`] it does nothing.
fn restart_readers() -> io::Result<()> {
    if let Some(processes) = PROCESSES.get() {
        let spawner = spawner::start(processes.makers)?;
        processes.pool.replace(spawner);
    }
    Ok(())
}

/// Ends the reader processes. Files cannot be opened any more.
pub fn end_readers() {
    if let Some(processes) = PROCESSES.get() {
        processes.pool.end();
    }
}

/// Returns the access to files of targets. Without [`crate::start_readers`] the calling thread
/// opens them itself.
pub fn of_targets() -> Files {
    with_patience(PATIENCE)
}

/// Returns access to files with the rights of the invoking user, for paths that come from an
/// untrusted process.
pub fn of_user() -> Files {
    if let Some(giver) = given() {
        return giver;
    }
    match handle(PATIENCE) {
        Some(handle) => Files::by(Arc::new(handle.with_user_rights())),
        None => Files::by(Arc::new(HereAsUser)),
    }
}

/// Returns access to files that the invoking user has named: with that user's rights, wherever they
/// are, and without a limit of time.
pub fn named_by_user() -> Files {
    if let Some(giver) = given() {
        return giver.with_remote(RemoteFiles::Open);
    }
    Files::by(Arc::new(HereAsUser)).with_remote(RemoteFiles::Open)
}

/// Returns access to files of targets for the thread that works aside: samples wait for its
/// answers, but not for long.
pub(crate) fn for_those_aside() -> Files {
    with_patience(PATIENCE_OF_SAMPLER)
}

/// Returns access to files of targets for the sampler, for which other threads wait.
pub(crate) fn for_sampler() -> Files {
    match handle(PATIENCE_OF_SAMPLER) {
        Some(handle) => Files::by(Arc::new(handle.fair(PATIENCE_OF_SAMPLER))),
        None => Files::default(),
    }
}

/// How far the readers are confined, as the kernel reports for one of them; `None` if there are no
/// readers, or it cannot be read.
pub fn confined() -> Option<Confined> {
    PROCESSES.get()?.pool.confined()
}

/// Returns the CPU time that readers have used.
pub fn cpu_time() -> Duration {
    let processes = PROCESSES.get();
    processes.map_or(Duration::ZERO, |processes| processes.pool.cpu_time())
}

/// Returns the private memory of readers and parsers, in bytes.
pub fn memory_bytes() -> u64 {
    let processes = PROCESSES.get();
    processes.map_or(0, |processes| processes.pool.memory_bytes())
}

/// Returns sentences about the places that have not answered.
pub fn notes() -> Vec<String> {
    let Some(Processes { pool, parsers, .. }) = PROCESSES.get() else {
        return Vec::new();
    };
    let mut notes = pool.notes();
    notes.extend(parsers.note());
    notes
}

/// Opens files in the calling process with the user's rights, when there are no readers.
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
    if let Some(giver) = given() {
        return giver;
    }
    match handle(patience) {
        Some(handle) => Files::by(Arc::new(handle)),
        None => Files::default(),
    }
}

/// Returns the access to files of a process without rights, which asks the process that it works for.
/// `None` in any other process.
fn given() -> Option<Files> {
    let giver = GIVER.get()?;
    Some(Files::by(giver.clone()))
}

fn handle(patience: Duration) -> Option<Handle> {
    let Processes { pool, parsers, .. } = PROCESSES.get()?;
    Some(Handle::new(pool.clone(), parsers.clone(), patience))
}
