//! Builds tables in the background, those of the hottest files of each user first, or loads them
//! from the cache.

pub mod elsewhere;
mod make;
mod queue;
mod read;

use super::Limits;
use super::cache::Cache;
use super::file_table::FileTable;
use super::no_table::NoTable;
use crate::channel::{Receiver, SyncSender, sync_channel};
use crate::confine;
use crate::ids::ModuleId;
pub use queue::Job;
use queue::Queue;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;
use symbolize::Reason;
use symbolize::files::Work;
use symbolize::object::Summary;
use symbolize::python::Trampoline;
use symbolize::revision::Revision;

/// The threads that build. Building is short work: more threads would only take more memory at
/// once.
const THREADS: [Duty; 2] = [Duty::Wanted, Duty::Any];

/// The work of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Only tables that samples wait for, with normal priority: on a busy machine a thread of low
    /// priority would take seconds for what takes a tenth of one.
    Wanted,
    /// The hottest files, with low priority.
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

/// The source of a file's bytes.
#[derive(Debug, Clone)]
pub enum Content {
    /// A file that its process has mapped.
    File {
        /// The file, opened when the mapping was seen.
        file: Arc<OwnedFd>,
        /// The state of the file when its headers were read; `None` if it is unknown.
        revision: Option<Revision>,
        /// What its headers told, or why that is unknown.
        summary: Result<Arc<Summary>, Reason>,
        /// The path as its process sees it: its debug information may be near.
        path: PathBuf,
        /// The root directory of that process, if it differs from ours.
        root: Option<Arc<OwnedFd>>,
    },
    /// Bytes that are in no file: the vDSO.
    Bytes(Arc<[u8]>),
    /// Python's trampolines, which all have the same code.
    Trampolines(Trampoline),
}

/// The result of building a table.
#[derive(Debug)]
pub struct Built {
    /// The file.
    pub file: ModuleId,
    /// The user who controls the file's content.
    pub user: u32,
    /// The table, or why there is none.
    pub table: Result<Arc<FileTable>, NoTable>,
}

/// The building threads and their queue.
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
    /// The limit in [`Limits`].
    information_bytes: u64,
    /// Held while a file is read; `None` if several may be read at once.
    turn: Option<Mutex<()>>,
}

impl Builder {
    /// Starts the building threads. Tables that they build are stored in the cache, if there is
    /// one.
    pub fn start(cache: Option<Cache>, limits: &Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            cache,
            information_bytes: limits.information_bytes,
            turn: limits.one_by_one.then(Mutex::default),
        });
        // A thread waits until its last table is taken, so that few are in memory.
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

    /// Requests the table of a file, or raises its priority. If too many are waiting, the coldest
    /// one is given up and returned.
    pub fn want(&self, job: Job) -> Option<ModuleId> {
        let mut queue = self.shared.queue();
        let given_up = queue.push(job);
        self.wake_for_news(queue);
        given_up
    }

    /// Raises the priority of a file by one sample, if it is waiting for that user or is being
    /// built. Returns false if it has to be requested.
    pub fn heat(&self, file: ModuleId, wanted_by: u32) -> bool {
        let mut queue = self.shared.queue();
        let is_known = queue.heat(file, wanted_by, 1);
        self.wake_for_news(queue);
        is_known
    }

    /// Wakes the threads if there is something new for them: that is a system call, and priorities
    /// are raised thousands of times a second.
    fn wake_for_news(&self, mut queue: MutexGuard<'_, Queue>) {
        let has_news = queue.take_news();
        drop(queue);
        if has_news {
            self.shared.wake.notify_all();
        }
    }

    /// Returns the next file that is done. A file may come twice, if samples began to wait for one
    /// that the slow thread had begun.
    pub fn next(&self) -> Option<Built> {
        let built = self.built.try_recv().ok()?;
        self.shared.queue().done(built.file);
        Some(built)
    }

    /// Returns the number of waiting files.
    pub fn waiting(&self) -> usize {
        self.shared.queue().len()
    }

    /// Returns the cache on disk, for statistics.
    pub fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref()
    }
}

impl Drop for Builder {
    /// The threads end when they next look for work; they are not joined.
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
    // Linux keeps this per thread. If it fails, everything works as well.
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
        // Files are untrusted: if one of them causes a panic, only that file has no table.
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
