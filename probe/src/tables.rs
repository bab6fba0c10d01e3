//! The unwind tables of all running files, and the mappings of processes to them, kept where the
//! walk reads them: in BPF maps, or in proftop's own memory.
//!
//! ```text
//! file ──► build ──► FileTable ──► pool: page blocks, page index ◄── Mapping
//!         ◄─ cache ─►       └────► dictionary: rules                   ▲
//! process ──► layout ────────────► lists: PROCESSES[tgid] ──► MAPPINGS ┘
//! ```
//!
//! Data is written in the order of the arrows, from the inside out: rules, rows, index, list,
//! process. Words that are no longer pointed to rest for a second before they are overwritten,
//! which is longer than any sample takes.
//!
//! | module | holds |
//! |---|---|
//! | `encode` | packs an unwind rule into a word, or into an extended rule |
//! | `dictionary` | the rules of all files, by number |
//! | `file_table` | the table of one file, before and after it is loaded |
//! | `pool` | the words of all tables, in chunks |
//! | `files` | the state of each file |
//! | `build` | the threads that build tables |
//! | `cache` | tables of earlier runs, on disk |
//! | `layout` | the executable mappings of a process |
//! | `lists` | these mappings in the form that the walk reads |
//! | `reader` | reads all of it in user space |
//! | `maps` | the memory |
//! | `ranges`, `resting` | free parts of the memory, and parts that will be free |

mod build;
mod cache;
mod dictionary;
mod encode;
mod file_table;
mod files;
mod layout;
mod lists;
mod maps;
mod no_table;
mod pool;
mod ranges;
mod reader;
mod resting;
mod stats;

pub use build::{Content, Job, elsewhere::answer as make_for_another};
pub use cache::Cache;
pub use file_table::TableHandle;
pub use layout::MappedRange;
pub use maps::{BpfMaps, Chunk, Chunks, Processes, TableMaps};
pub use no_table::NoTable;
pub use reader::Reader;
pub use stats::TableStats;

use crate::ids::ModuleId;
use crate::shared::Shared;
use crate::shares::{OverShare, SHARES, Scarce};
use build::{Builder, Built};
use dictionary::Dictionary;
use file_table::FileTable;
use files::{Files, Patience};
use lists::Lists;
use maps::{EXTENDED_BYTES, RULES_BYTES};
use pool::Pool;
use probe_ebpf::table::{Mapping, MappingList};
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// How long the table of a file that is no longer mapped is kept: a build starts the same programs
/// again and again.
pub(crate) const PATIENCE_NS: u64 = 60_000_000_000;

/// How long it is kept at least, unless there is no room: a process that maps the file may have
/// just started.
const PATIENCE_LEAST_NS: u64 = 10_000_000_000;

/// Tables that nobody uses may have this fraction (1/n) of the memory in between: a build also
/// starts large programs once. From the cache a table is back in milliseconds.
const UNUSED_PART: u64 = 8;

/// Maximum number of chunks that one call makes: the kernel takes some time for each.
const CHUNKS_PER_POLL: u64 = 2;

/// Limits of the resources to use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum kernel memory for tables; at least one chunk of 1 MiB is used.
    pub table_bytes: u64,
    /// Maximum size of the unwind information of one file: reading it takes several times as much
    /// memory for a moment.
    pub information_bytes: u64,
    /// Whether only one file is read at a time.
    pub one_by_one: bool,
    /// The directory that contains the cache; `None` for no cache.
    pub cache_base: Option<PathBuf>,
    /// Maximum size of the cache on disk.
    pub cache_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            table_bytes: 128 << 20,
            information_bytes: u64::MAX,
            one_by_one: false,
            cache_base: Cache::default_base(),
            cache_bytes: cache::BYTES_MAX,
        }
    }
}

/// All tables and all lists.
pub struct Tables {
    pool: Pool,
    dictionary: Dictionary,
    files: Files,
    lists: Lists,
    builder: Builder,
    rules: Arc<Shared>,
    extended: Arc<Shared>,
    mappings: Arc<Shared>,
}

impl Tables {
    /// Makes empty tables. If the cache cannot be used, works without it.
    pub fn new(maps: TableMaps, limits: &Limits) -> io::Result<Self> {
        let open = |base: &PathBuf| Cache::open(base, limits.cache_bytes).ok();
        let cache = limits.cache_base.as_ref().and_then(open);
        let (rules, extended, mappings) = (maps.rules, maps.extended, maps.mappings);
        Ok(Self {
            pool: Pool::new(maps.chunks, limits.table_bytes),
            dictionary: Dictionary::new(rules.clone(), extended.clone()),
            files: Files::default(),
            lists: Lists::new(mappings.clone(), maps.processes),
            builder: Builder::start(cache, limits)?,
            rules,
            extended,
            mappings,
        })
    }

    /// Requests the table of a file, or raises its priority. Does nothing if the file is known.
    pub fn want(&mut self, job: Job) {
        if self.files.table_of(job.file).is_some() {
            return;
        }
        if !self.files.is_wanted(job.file) {
            self.files.set_wanted(job.file, job.user);
        }
        if let Some(given_up) = self.builder.want(job) {
            self.files.forget(given_up);
        }
    }

    /// Raises the priority of a file's table by one sample of this user, and requests the table if
    /// that was not done. Does nothing if the file is known.
    pub fn hurry(&mut self, job: &Job, wanted_by: u32) {
        if self.files.table_of(job.file).is_some() || self.builder.heat(job.file, wanted_by) {
            return;
        }
        self.want(Job {
            hotness: 1,
            wanted_by,
            ..job.clone()
        });
    }

    /// Loads some of the tables that were built, and updates the processes that map the files.
    /// Returns the files that have got a table. Has to be called often.
    pub fn poll(&mut self, now_ns: u64) -> Vec<ModuleId> {
        let mut ready = HashSet::new();
        let made = self.pool.made();
        while self.pool.made() - made < CHUNKS_PER_POLL {
            let Some(built) = self.builder.next() else {
                break;
            };
            if self.files.table_of(built.file).is_some() {
                continue;
            }
            let Built { file, user, table } = built;
            let loaded = table.and_then(|table| self.load(file, user, &table));
            match loaded {
                Ok(()) => _ = ready.insert(file),
                Err(reason) => self.files.set_none(file, user, reason),
            }
            if loaded.is_err_and(NoTable::is_for_want_of_room) {
                self.free_unused(Patience::NONE, now_ns);
            }
        }
        if !ready.is_empty() {
            let files = &self.files;
            self.lists
                .refresh(&ready, now_ns, &|layout| files.resolve(layout));
        }
        ready.into_iter().collect()
    }

    /// Returns the table of a file, or why there is none. `None` while that is unknown: then it has
    /// to be requested with [`want`](Self::want).
    pub fn table_of(&self, file: ModuleId) -> Option<Result<TableHandle, NoTable>> {
        self.files.table_of(file)
    }

    /// Sets the executable mappings of a process of a user, sorted by address. Nothing is written
    /// if they are unchanged. Returns false if the user has used up a share, and the rest is
    /// reserved for others.
    pub fn publish(&mut self, tgid: u32, user: u32, layout: &[MappedRange], now_ns: u64) -> bool {
        let files = &self.files;
        let resolve: lists::Resolve<'_> = &|layout| files.resolve(layout);
        self.lists.publish(tgid, user, layout, now_ns, resolve)
    }

    /// Returns a current executable mapping in the form of the walk.
    pub fn mapping(&self, range: &MappedRange) -> Mapping {
        self.files.mapping(range)
    }

    /// Returns the user to whom a published process is charged.
    pub fn user_of(&self, tgid: u32) -> Option<u32> {
        self.lists.user_of(tgid)
    }

    /// Removes the mappings of a process that has ended, or must not be walked.
    pub fn unpublish(&mut self, tgid: u32, now_ns: u64) {
        self.lists.unpublish(tgid, now_ns);
    }

    /// Records that a process was sampled: the lists of others are evicted before its own.
    pub fn touch(&mut self, tgid: u32, now_ns: u64) {
        self.lists.touch(tgid, now_ns);
    }

    /// Returns the list of a published process; it may have been evicted.
    pub fn list_of(&self, tgid: u32) -> Option<MappingList> {
        self.lists.list_of(tgid)
    }

    /// Frees what is no longer needed, and retries what waited for room. Has to be called about
    /// once a second.
    pub fn sweep(&mut self, now_ns: u64) {
        let files = &self.files;
        self.lists.sweep(now_ns, &|layout| files.resolve(layout));
        let patience = Patience {
            least_ns: PATIENCE_LEAST_NS,
            words_max: self.pool.words() / UNUSED_PART,
            all_ns: PATIENCE_NS,
        };
        self.free_unused(patience, now_ns);
        self.evict(now_ns);
        if self.pool.sweep(now_ns) {
            // An eighth more than the reserve, so that tables are not evicted and loaded
            // alternately.
            let share = self.pool.words() / SHARES as u64;
            let is_ample = self.pool.available_words() >= 2 * share;
            self.files.forget_those_without_room(is_ample);
        }
        self.empty_a_chunk(now_ns);
    }

    /// Moves the words that are in use out of a chunk that has few of them, so that it can be removed
    /// when they have rested.
    fn empty_a_chunk(&mut self, now_ns: u64) {
        let Some(chunk) = self.pool.chunk_to_empty() else {
            return;
        };
        let moved = self.files.move_out_of(chunk, &mut self.pool);
        if !moved.elsewhere.is_empty() {
            let files = &self.files;
            let resolve: lists::Resolve<'_> = &|layout| files.resolve(layout);
            self.lists.withdraw(&moved.elsewhere, now_ns, resolve);
        }
        if !moved.left.is_empty() {
            self.pool.free(moved.left, now_ns);
        }
    }

    /// Returns the files whose tables were dropped since the last call because no process had them
    /// mapped. They have to be requested again for the next process that maps them.
    pub fn take_dropped(&mut self) -> Vec<ModuleId> {
        self.files.take_dropped()
    }

    /// Returns a view of the current state, for one batch of samples.
    pub fn reader(&self) -> Reader {
        Reader::new(
            self.pool.chunks().clone(),
            self.rules.clone(),
            self.extended.clone(),
            self.mappings.clone(),
        )
    }

    /// Whether a view that was made earlier includes all current tables.
    pub fn is_read_by(&self, reader: &Reader) -> bool {
        reader.is_of(self.pool.chunks())
    }

    /// Returns the users whose files have no tables, or whose rules are left out, because they have
    /// used up their share.
    pub fn over_share(&self) -> Vec<OverShare> {
        let of = |what| move |(user, count)| OverShare { user, what, count };
        let tables = self.files.over_share().into_iter().map(of(Scarce::Tables));
        let rules = self.dictionary.over_share().map(of(Scarce::Rules));
        tables.chain(rules).collect()
    }

    /// Returns the amounts in use, for the Health page.
    pub fn stats(&self) -> TableStats {
        let (tables, rows) = self.files.loaded();
        let lists = self.lists.counts();
        let cache = self.builder.cache();
        let chunks = self.pool.chunk_count();
        let fixed = RULES_BYTES + EXTENDED_BYTES + self.mappings.bytes();
        TableStats {
            tables,
            rows,
            waiting: self.builder.waiting(),
            chunks,
            kernel_bytes: (chunks * maps::CHUNK_BYTES + fixed) as u64,
            used_bytes: self.pool.used_words() * 4,
            rules: self.dictionary.rules(),
            extended_rules: self.dictionary.extended(),
            processes: self.lists.processes(),
            lists: self.lists.lists(),
            files_without_room: self.files.without_room(),
            chunks_refused: self.pool.refused(),
            rules_dropped: self.dictionary.dropped(),
            processes_evicted: lists.evicted,
            processes_refused: lists.refused,
            lists_over_share: lists.over_share,
            lists_postponed: lists.postponed,
            lists_cut: self.files.cut(),
            cache_hits: cache.map_or(0, Cache::hits),
            cache_damaged: cache.map_or(0, Cache::damaged),
        }
    }

    fn load(&mut self, file: ModuleId, user: u32, table: &FileTable) -> Result<(), NoTable> {
        let words = (table.bytes() / 4) as u64;
        if !self.may_load(user, words) {
            return Err(NoTable::OverShare);
        }
        let loaded = table
            .load(&mut self.pool, &mut self.dictionary, user)
            .ok_or(NoTable::NoRoom)?;
        let segments = table.segments.clone();
        self.files.set_ready(file, user, loaded, segments);
        Ok(())
    }

    /// Whether a table of that length may be loaded for a user: there is enough room for others, or
    /// the user has less than a share.
    fn may_load(&self, user: u32, words: u64) -> bool {
        let share = self.pool.words() / SHARES as u64;
        let available = self.pool.available_words();
        // If there is no room at all, the reason is another one.
        available < words
            || available >= words + share
            || self.files.words_of(user) + words <= share
    }

    /// If a user has more than a share, removes tables of the user who has most, until a share is
    /// free for the next user: the newest first, so that long-running programs are not affected.
    fn evict(&mut self, now_ns: u64) {
        let share = self.pool.words() / SHARES as u64;
        let mut evicted = HashSet::new();
        let mut runs = Vec::new();
        let mut available = self.pool.available_words();
        while available < share {
            let most = self.files.who_has_most();
            let Some((user, _)) = most.filter(|(_, words)| *words > share) else {
                break;
            };
            let Some((file, its)) = self.files.take_newest(user) else {
                break;
            };
            available += its.iter().map(|run| u64::from(run.words)).sum::<u64>();
            evicted.insert(file);
            runs.extend(its);
        }
        if evicted.is_empty() {
            return;
        }
        // First all pointers to them are removed.
        let files = &self.files;
        let resolve: lists::Resolve<'_> = &|layout| files.resolve(layout);
        self.lists.withdraw(&evicted, now_ns, resolve);
        self.pool.free(runs, now_ns);
    }

    fn free_unused(&mut self, patience: Patience, now_ns: u64) {
        let lists = &self.lists;
        let is_mapped = |file| lists.is_mapped(file);
        let runs = self.files.take_unused(is_mapped, patience, now_ns);
        if !runs.is_empty() {
            self.pool.free(runs, now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
