//! Builds tables in the background, those of the hottest files of each user first, or
//! finds them in the cache.

pub mod elsewhere;
mod make;
mod queue;
mod read;

use super::Limits;
use super::cache::Cache;
use super::file_table::FileTable;
use super::no_table::NoTable;
use crate::confine;
use crate::ids::ModuleId;
pub use queue::Job;
use queue::Queue;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;
use symbolize::files::Work;
use symbolize::python::Trampoline;

/// Building is short work: more threads would only take more memory at once.
const THREADS: [Duty; 2] = [Duty::Wanted, Duty::Any];

/// What a thread builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Only tables that samples wait for, and at once: on a busy machine a thread
    /// of low priority would take seconds for what takes a tenth of one.
    Wanted,
    /// Whatever is hottest, without disturbing anybody.
    Any,
}

impl Duty {
    fn hotness_min(self) -> u64 {
        match self {
            Duty::Wanted => 1,
            Duty::Any => 0,
        }
    }

    fn nice(self) -> i32 {
        match self {
            Duty::Wanted => 0,
            Duty::Any => 5,
        }
    }

    fn work(self) -> Work {
        match self {
            Duty::Wanted => Work::WantedTables,
            Duty::Any => Work::Tables,
        }
    }
}

/// Where a file's bytes come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// A file that its process has mapped.
    File {
        /// Opened when it was seen mapped.
        file: Arc<OwnedFd>,
        /// As its process sees it: its debug information may be near.
        path: PathBuf,
        /// The root directory of that process, if it is not ours.
        root: Option<Arc<OwnedFd>>,
    },
    /// What is in no file: the vDSO.
    Bytes(Arc<[u8]>),
    /// Python's trampolines, which are all alike.
    Trampolines(Trampoline),
}

/// What became of a file.
#[derive(Debug)]
pub struct Built {
    pub file: ModuleId,
    /// Whose word the file is.
    pub user: u32,
    pub table: Result<Arc<FileTable>, NoTable>,
}

/// The threads, and what they are to do.
#[derive(Debug)]
pub struct Builder {
    shared: Arc<Shared>,
    built: Receiver<Built>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    cache: Option<Cache>,
    /// As in [`Limits`].
    information_bytes: u64,
    /// Who has it reads a file; `None` if several are read at once.
    turn: Option<Mutex<()>>,
}

impl Builder {
    /// Starts the threads that build. What they built is kept in the cache, if there is
    /// one.
    pub fn start(cache: Option<Cache>, limits: &Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            cache,
            information_bytes: limits.information_bytes,
            turn: limits.one_by_one.then(Mutex::default),
        });
        // A thread waits until its last table is taken: few are in memory.
        let (sender, built) = sync_channel(THREADS.len());
        for duty in THREADS {
            let (shared, sender) = (shared.clone(), sender.clone());
            std::thread::Builder::new()
                .name("tables".into())
                .spawn(move || {
                    confine::thread(confine::Duty::Parsing);
                    work(duty, &shared, &sender);
                })?;
        }
        Ok(Self { shared, built })
    }

    /// Asks for a file's table, or for it to come sooner. When too many are
    /// waiting, the coldest one is given up and returned.
    pub fn want(&self, job: Job) -> Option<ModuleId> {
        let given_up = self.shared.queue().push(job);
        self.shared.wake.notify_all();
        given_up
    }

    /// The next file that is done. It may come twice, if samples began to wait for
    /// what the slow thread had begun.
    pub fn next(&self) -> Option<Built> {
        let built = self.built.try_recv().ok()?;
        self.shared.queue().done(built.file);
        Some(built)
    }

    /// How many files wait.
    pub fn waiting(&self) -> usize {
        self.shared.queue().len()
    }

    /// The cache on disk, for figures.
    pub fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref()
    }
}

impl Drop for Builder {
    /// The threads end when they next look; nobody waits for them.
    fn drop(&mut self) {
        self.shared.queue().close();
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    /// Waits for work; `None` at the end.
    fn next_job(&self, duty: Duty) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if queue.is_closed() {
                return None;
            }
            if let Some(job) = queue.pop(duty, Instant::now()) {
                return Some(job);
            }
            let waited = self.wake.wait(queue);
            queue = waited.unwrap_or_else(|lock| lock.into_inner());
        }
    }
}

fn work(duty: Duty, shared: &Shared, sender: &SyncSender<Built>) {
    // Linux keeps this per thread. Without it everything works as well.
    _ = rustix::process::nice(duty.nice());
    let (cache, files) = (shared.cache.as_ref(), crate::files::of_targets());
    while let Some(job) = shared.next_job(duty) {
        let Job {
            file,
            content,
            user,
            wanted_by,
            ..
        } = job;
        let turn = shared.turn.as_ref();
        let turn = turn.map(|turn| turn.lock().unwrap_or_else(|lock| lock.into_inner()));
        let begun = Instant::now();
        // Files come from strangers: should one of them find a way to make us
        // panic, it is that file which has no table.
        let read = faults::catch("reading unwind tables", || {
            let bytes_max = shared.information_bytes;
            read::table(&content, cache, &files, bytes_max, duty.work())
        });
        let (table, new_key) = match read {
            Ok(Ok(found)) => (Ok(Arc::new(found.table)), found.new_key),
            Ok(Err(reason)) => (Err(reason), None),
            Err(_) => (Err(NoTable::Damaged), None),
        };
        drop(turn);
        let now = Instant::now();
        shared.queue().took(wanted_by, now - begun, now);
        let to_store = new_key.zip(table.as_ref().ok().cloned());
        if sender.send(Built { file, user, table }).is_err() {
            return;
        }
        if let (Some((key, table)), Some(cache)) = (to_store, cache) {
            cache.store(&key, &table);
        }
    }
}

#[cfg(test)]
mod tests;
