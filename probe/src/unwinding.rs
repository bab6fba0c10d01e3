//! Supplies the walk in BPF with tables and mappings, and walks in user space the stacks that came
//! before them.
//!
//! The states of a process's samples:
//!
//! ```text
//!  not published                                published
//!  BPF: frame pointers, and a copy of the       BPF: by tables
//!  stack; held here, then walked here
//!       └─── sampled, and 1. to 3. hold ───────────►┘
//!       ◄── exec, exit; mappings changed and 1. to 3. do not hold ──┘
//! ```
//!
//! 1. Its program has started ([`starting`]): before, the dynamic linker still maps files.
//! 2. Every file that it maps has a table, or is known to have none. Tables that no process needed
//!    for a while were dropped, and are requested again ([`Unwinding::take_dropped`]).
//! 3. There is room for its list.
//!
//! A held sample is walked as soon as 2. is true for the mappings that it was taken with; after
//! [`HELD_NS`], or if the copies take more than [`HELD_BYTES_MAX`], with the available tables. The
//! walk by frame pointers is kept if it got further.

mod check;
mod dropped;
mod shares;
mod starting;

use crate::decode::{Later, RawSample};
use crate::ids::ModuleId;
use crate::mappings::{Backing, Mapping, Mappings};
use crate::memory;
use crate::native;
use crate::resolve::Located;
use crate::sample::{KeptWalk, Module, ModuleKind, OverShare, Scarce, WalkCheck};
use crate::shares::SHARES;
use crate::sideband::record::{Event, What};
use crate::stack::StackCopy;
use crate::tables::{Content, Job, MappedRange, Reader, Tables};
use crate::time::now_ns;
use dropped::{Again, Dropped};
use foldhash::{HashMap, HashMapExt as _, HashSet};
use probe_ebpf::{Ending, UserFrame, table};
use shares::Shares;
use starting::Starting;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use symbolize::Files;
use symbolize::python::Trampoline;

/// How long a sample waits for tables: longer than it takes to build the largest.
const HELD_NS: u64 = 1_500_000_000;

/// Maximum bytes of held stacks. Beyond, the oldest are walked with the available tables.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Maximum number of windows into tables, of 64 KiB each, that stay mapped from one turn to the
/// next: mapped memory counts as memory of this process.
const OPEN_MAX: usize = 64;

/// Maximum number of mappings that are searched for files without tables at each sample: more than
/// nearly all programs have.
const HURRIED_ALWAYS: usize = 512;

/// How often free memory is given back to the kernel: looking for it takes milliseconds.
const GIVE_BACK_NS: u64 = 5_000_000_000;

/// How often the mappings of a process that has more are searched.
const HURRY_NS: u64 = 250_000_000;

/// Maximum number of files, each with an open descriptor, whose tables are requested again when
/// there is room for them; with more, the stacks stay as they are.
const WITHOUT_ROOM_MAX: usize = 1024;

/// A sample whose stack is still to be walked.
struct Held {
    raw: RawSample,
    located: Located,
    stack: StackCopy,
    /// When it was first held. That may be long after it was taken, if the sampler has to read very
    /// many events; tables are requested only from then on.
    since_ns: u64,
}

/// How many lists of a process are remembered: a turn publishes few.
const LISTS_MAX: usize = 32;

/// The mappings that were published for a process, and since when: the last are current. `None` if
/// its list was removed.
#[derive(Default)]
struct Published(VecDeque<(u64, Option<Arc<Mappings>>)>);

impl Published {
    /// Adds the current mappings. Has to be called when the walk uses the new ones.
    fn push(&mut self, mappings: Option<Arc<Mappings>>) {
        self.push_since(now_ns(), mappings);
    }

    fn push_since(&mut self, since_ns: u64, mappings: Option<Arc<Mappings>>) {
        self.0.push_back((since_ns, mappings));
        if self.0.len() > LISTS_MAX {
            self.0.pop_front();
        }
    }

    fn in_place(&self) -> Option<&Arc<Mappings>> {
        self.0.back()?.1.as_ref()
    }

    /// Returns the mappings that a walk at that time used.
    fn at(&self, time_ns: u64) -> Option<&Arc<Mappings>> {
        let mut lists = self.0.iter().rev();
        let (_, list) = lists.find(|(since_ns, _)| *since_ns <= time_ns)?;
        list.as_ref()
    }
}

/// The supply of tables.
pub struct Unwinding {
    tables: Tables,
    frames_max: usize,
    published: HashMap<u32, Published>,
    starting: Starting,
    shares: Shares,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// For users whose stacks took more than their share, the number of stacks that were walked
    /// early.
    given_up: BTreeMap<u32, usize>,
    /// Files whose table is not known yet.
    unknown: HashMap<ModuleId, Job>,
    dropped: Dropped,
    /// When missing tables of a process with very many mappings are requested again.
    hurried: HashMap<u32, u64>,
    /// Files for whose tables there was no room.
    without_room: HashMap<ModuleId, Job>,
    /// The tables with which held stacks were last walked. To open a window of tables it has to be
    /// mapped, which costs more than a walk. It is closed when free memory is given back.
    reader: Option<Reader>,
    /// When free memory was last given back.
    given_back_ns: u64,
    walks: WalkCheck,
    keeps_walks: bool,
    kept_walks: Vec<KeptWalk>,
}

impl Unwinding {
    /// Starts without published processes. A walk has at most `frames_max` frames.
    pub fn new(tables: Tables, frames_max: usize) -> Self {
        Self {
            tables,
            frames_max,
            published: HashMap::new(),
            starting: Starting::default(),
            shares: Shares::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            given_up: BTreeMap::new(),
            unknown: HashMap::new(),
            dropped: Dropped::default(),
            hurried: HashMap::new(),
            without_room: HashMap::new(),
            reader: None,
            given_back_ns: 0,
            walks: WalkCheck::default(),
            keeps_walks: false,
            kept_walks: Vec::new(),
        }
    }

    /// Keeps walks, for the comparison with other unwinders.
    #[must_use]
    pub fn keeping_walks(mut self, keeps: bool) -> Self {
        self.keeps_walks = keeps;
        self
    }

    /// Returns the walks that were kept since the last call.
    pub fn take_kept_walks(&mut self) -> Vec<KeptWalk> {
        std::mem::take(&mut self.kept_walks)
    }

    /// Adds a file that was seen mapped: its table is built when nothing hotter waits, so that it
    /// exists before most processes need it.
    pub fn add_module(&mut self, module: &Module) {
        let content = match &module.kind {
            ModuleKind::File {
                file: Some(file),
                identity,
                summary,
                path,
                root,
                ..
            } => Content::File {
                file: file.clone(),
                revision: identity.as_ref().map(|identity| identity.revision.clone()),
                summary: summary.clone(),
                path: path.clone(),
                root: root.clone(),
            },
            ModuleKind::Vdso => match own_vdso() {
                Some(bytes) => Content::Bytes(bytes),
                None => return,
            },
            _ => return,
        };
        self.add(module.id, content, module.user);
    }

    /// Adds a kind of Python's trampolines, which has this number.
    pub fn add_trampolines(&mut self, number: ModuleId, kind: Trampoline) {
        // The table is proftop's own, whichever process has the trampolines.
        self.add(number, Content::Trampolines(kind), 0);
    }

    fn add(&mut self, file: ModuleId, content: Content, user: u32) {
        let job = Job {
            file,
            content,
            hotness: 0,
            user,
            wanted_by: user,
        };
        self.want(job);
    }

    fn want(&mut self, job: Job) {
        self.dropped.note_request(&job);
        self.tables.want(job.clone());
        self.unknown.insert(job.file, job);
    }

    /// Requests tables of a process again that were dropped. Returns the files that have to be opened
    /// for that, each with the range of addresses of its mapping: the caller passes them to
    /// [`Unwinding::add_module`]. Until then they count as files without a table.
    pub fn take_dropped(
        &mut self,
        pid: u32,
        mappings: &Mappings,
        now_ns: u64,
    ) -> Vec<(ModuleId, (u64, u64))> {
        // No table was dropped of what a process with a list maps.
        let needs_none = self.dropped.is_empty() || self.has_list(pid, mappings);
        if needs_none || self.shares.contains(pid) || !self.is_search_due(pid, mappings, now_ns) {
            return Vec::new();
        }
        let Again { jobs, files } = self.dropped.take(mappings);
        for job in jobs {
            self.want(job);
        }
        files
    }

    /// Returns files to be forgotten, which nobody has mapped for longest, if there are too many of
    /// them. Those that a process maps after all, as `find_mapped` tells, are kept.
    pub fn take_surplus(
        &mut self,
        find_mapped: impl FnOnce() -> HashSet<ModuleId>,
    ) -> Vec<ModuleId> {
        let surplus = self.dropped.take_surplus();
        if surplus.is_empty() {
            return surplus;
        }
        let mapped = find_mapped();
        let (kept, gone) = surplus.into_iter().partition(|file| mapped.contains(file));
        self.dropped.add(kept);
        gone
    }

    /// Applies an event of a process. BPF itself has already removed the list of a new program, and
    /// given a child its parent's.
    pub fn apply(&mut self, event: &Event, now_ns: u64) {
        self.starting.apply(event);
        match event.what {
            What::Comm {
                pid,
                tid,
                exec: true,
                ..
            } if pid == tid => {
                self.forget(pid, now_ns);
                self.shares.forget(pid);
            }
            What::Exit { pid, tid } if pid == tid => {
                self.remove(pid, now_ns);
            }
            What::Fork { pid, parent_pid } => {
                let parent = self.published.get(&parent_pid);
                let shared = parent.filter(|_| self.tables.list_of(parent_pid).is_some());
                let mappings = shared.and_then(Published::in_place).cloned();
                if let (Some(mappings), Some(user)) = (mappings, self.tables.user_of(parent_pid)) {
                    // BPF gave the child its parent's list before it ran.
                    let known = self.published.entry(pid).or_default();
                    known.push_since(0, Some(mappings.clone()));
                    self.publish(pid, user, &mappings, now_ns);
                }
            }
            _ => {}
        }
    }

    /// Removes everything about a process that has ended. It may have been published again since its
    /// end: its last samples may come after that.
    pub fn remove(&mut self, pid: u32, now_ns: u64) {
        self.forget(pid, now_ns);
        self.published.remove(&pid);
        self.shares.forget(pid);
        self.tables.unpublish(pid, now_ns);
    }

    /// Ends a stack at the point where it was walked by the rules of an earlier mapping: the list
    /// in BPF is updated a moment after the mappings. `mappings` are those at the time of the
    /// sample.
    pub fn cut_outdated(&self, raw: &mut RawSample, mappings: &Arc<Mappings>) {
        let is_by_table = !raw.stack_follows || raw.is_checked;
        let published = self.published.get(&raw.tgid);
        let Some(published) = published.filter(|_| is_by_table) else {
            return;
        };
        let walked_by = published.at(raw.time_ns);
        let Some(walked_by) = walked_by.filter(|list| !Arc::ptr_eq(list, mappings)) else {
            return;
        };
        let is_outdated = |frame: &UserFrame| {
            let address = frame.address_for_lookup();
            let was = walked_by.find(address);
            was.is_some_and(|was| {
                let is = mappings.find(address);
                !is.is_some_and(|is| {
                    was.backing == is.backing && was.offset_of(address) == is.offset_of(address)
                })
            })
        };
        if let Some(last) = raw.user.iter().position(is_outdated) {
            raw.stopped_at = raw.user[last].address();
            raw.user.truncate(last + 1);
            raw.ending = Ending::Remapped;
        }
    }

    /// Processes a sample of a process: it is walked by tables as soon as they exist.
    pub fn sampled(&mut self, pid: u32, user: u32, mappings: &Arc<Mappings>, now_ns: u64) {
        if self.shares.is_refused(pid, now_ns) {
            return;
        }
        if self.has_list(pid, mappings) {
            self.tables.touch(pid, now_ns);
        } else if !self.starting.contains(pid, now_ns) && self.has_tables(mappings) {
            self.publish(pid, user, mappings, now_ns);
        } else {
            // With the current tables it would be walked by frame pointers in between. Without a
            // list, its stacks are copied to user space.
            self.forget(pid, now_ns);
            self.hurry(pid, user, mappings, now_ns);
        }
    }

    /// Whether the walk uses these mappings of a process.
    fn has_list(&self, pid: u32, mappings: &Mappings) -> bool {
        let known = self.published.get(&pid).and_then(Published::in_place);
        let is_same = known.is_some_and(|known| std::ptr::eq(&raw const **known, mappings));
        is_same && self.tables.list_of(pid).is_some()
    }

    /// Whether the stacks of a process were walked by tables at that time.
    pub fn was_published(&self, pid: u32, time_ns: u64) -> bool {
        let published = self.published.get(&pid);
        published.is_some_and(|published| published.at(time_ns).is_some())
    }

    /// Requests the missing tables of a user's process with priority.
    fn hurry(&mut self, pid: u32, user: u32, mappings: &Mappings, now_ns: u64) {
        if !self.is_search_due(pid, mappings, now_ns) {
            return;
        }
        if mappings.len() > HURRIED_ALWAYS {
            self.hurried.insert(pid, now_ns + HURRY_NS);
        }
        let is_unknown = |file: &ModuleId| self.unknown.contains_key(file);
        // One file may be mapped thousands of times.
        let mut wanted = BTreeSet::new();
        wanted.extend(files(mappings).filter(is_unknown));
        for file in wanted {
            if let Some(job) = self.unknown.get(&file) {
                self.tables.hurry(job, user);
            }
        }
    }

    /// Whether the mappings of a process may be searched for files without tables: if it has very
    /// many, that is not done at each sample.
    fn is_search_due(&self, pid: u32, mappings: &Mappings, now_ns: u64) -> bool {
        let due_ns = self.hurried.get(&pid);
        mappings.len() <= HURRIED_ALWAYS || due_ns.is_none_or(|due_ns| now_ns >= *due_ns)
    }

    /// Holds a sample until it can be walked.
    pub fn hold(&mut self, raw: RawSample, located: Located, stack: StackCopy, now_ns: u64) {
        self.held_bytes += stack.bytes.size();
        self.held.push_back(Held {
            raw,
            located,
            stack,
            since_ns: now_ns,
        });
    }

    /// Returns the time of the oldest held sample.
    pub fn oldest_held_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.raw.time_ns)
    }

    /// Loads tables that are ready, and returns the samples that were walked with them.
    pub fn poll(&mut self, now_ns: u64) -> Vec<(RawSample, Located)> {
        self.tables.poll(now_ns);
        self.dropped.add(self.tables.take_dropped());
        self.settle();
        if self.held.is_empty() {
            return Vec::new();
        }
        let last = self.reader.take();
        let last = last.filter(|last| self.tables.is_read_by(last) && last.open() <= OPEN_MAX);
        let reader = last.unwrap_or_else(|| self.tables.reader());
        let mut walked = Vec::new();
        let mut waiting = VecDeque::new();
        let mut bytes = 0;
        let mut surplus = surplus_by_user(&self.held, HELD_BYTES_MAX);
        for mut held in std::mem::take(&mut self.held) {
            let is_old = now_ns.saturating_sub(held.since_ns) > HELD_NS;
            let surplus = surplus.get_mut(&held.located.user);
            let is_surplus = surplus.as_ref().is_some_and(|surplus| **surplus > 0);
            if !is_old && !is_surplus && !self.has_tables(&held.located.mappings) {
                bytes += held.stack.bytes.size();
                waiting.push_back(held);
                continue;
            }
            if let Some(surplus) = surplus {
                *surplus = surplus.saturating_sub(held.stack.bytes.size());
            }
            if is_surplus && !is_old && !self.has_tables(&held.located.mappings) {
                *self.given_up.entry(held.located.user).or_default() += 1;
            }
            let mappings = self.by_tables(&held.located.mappings);
            let found = native::walk(&held.stack, &mappings, &reader, self.frames_max);
            if self.keeps_walks {
                self.kept_walks.push(KeptWalk {
                    pid: held.raw.tgid,
                    registers: held.stack.registers,
                    scratch: held.stack.scratch,
                    stack: held.stack.bytes.clone(),
                    mappings: layout(&held.located.mappings),
                    frames: found.frames.clone(),
                    ending: found.ending,
                    is_early: !self.has_tables(&held.located.mappings),
                });
            }
            // By frame pointers an incomplete stack can look complete; a walk that stopped for want
            // of memory says less than that one.
            if found.frames.len() >= held.raw.user.len() || found.ending == Ending::Root {
                if let Some(later) = &mut held.raw.python.later {
                    later.same_frames_from = same_frames(&found.starts, &held.stack, later);
                }
                held.raw.user = found.frames;
                held.raw.ending = found.ending;
                held.raw.stopped_at = found.stopped_at;
            }
            let Located { mappings, .. } = &held.located;
            held.located.tables_late = self.is_before_tables(&held.raw.user, mappings);
            walked.push((held.raw, held.located));
        }
        self.held = waiting;
        self.held_bytes = bytes;
        self.reader = Some(reader);
        walked
    }

    /// Whether a stack went through code of a file whose table was not loaded yet: it was walked by
    /// frame pointers there, so that callers may be missing although it reached the root.
    fn is_before_tables(&self, frames: &[UserFrame], mappings: &Mappings) -> bool {
        let is_unknown = |frame: &UserFrame| {
            let mapping = mappings.find(frame.address_for_lookup());
            match mapping.map(|mapping| &mapping.backing) {
                Some(Backing::Module(file)) => !self.is_settled(*file),
                _ => false,
            }
        };
        let are_all_settled = self.unknown.is_empty() && self.dropped.is_empty();
        !are_all_settled && frames.iter().any(is_unknown)
    }

    /// Updates the files for which it is known now what their table is, or why there is none.
    fn settle(&mut self) {
        let tables = &self.tables;
        let known = |file: &ModuleId| tables.table_of(*file);
        for (file, job) in self.unknown.extract_if(|file, _| known(file).is_some()) {
            let is_early = matches!(known(&file), Some(Err(why)) if why.is_for_want_of_room());
            if is_early && self.without_room.len() < WITHOUT_ROOM_MAX {
                self.without_room.insert(file, job);
            }
        }
    }

    /// Requests again the tables for which there was no room, if there may be some now.
    fn ask_again(&mut self) {
        let tables = &self.tables;
        let may_come = |file: &ModuleId| tables.table_of(*file).is_none();
        let again: Vec<_> = self
            .without_room
            .extract_if(|file, _| may_come(file))
            .collect();
        for (_, job) in again {
            self.want(job);
        }
    }

    /// Frees what is unused. Has to be called once a second.
    pub fn sweep(&mut self, now_ns: u64) {
        self.tables.sweep(now_ns);
        self.dropped.add(self.tables.take_dropped());
        self.hurried.retain(|_, due_ns| now_ns < *due_ns);
        self.ask_again();
        self.starting.sweep(now_ns);
        self.shares.sweep(now_ns);
        // Copies of stacks, and tables before they are loaded, take megabytes for a moment. On a
        // machine that compiles there is no second without some.
        if now_ns.saturating_sub(self.given_back_ns) >= GIVE_BACK_NS {
            self.given_back_ns = now_ns;
            self.reader = None;
            memory::give_back_much();
        }
    }

    /// Walks once more a stack that was walked by tables, and compares.
    pub fn check(&mut self, raw: &RawSample, located: &Located, stack: &StackCopy) {
        let reader = self.tables.reader();
        let mappings = self.by_tables(&located.mappings);
        let again = native::walk(stack, &mappings, &reader, self.frames_max);
        check::compare(raw, &again, &mut self.walks);
    }

    /// Returns the comparison of second walks with first ones.
    pub fn walks(&self) -> &WalkCheck {
        &self.walks
    }

    /// Returns the mappings of a process in the form of the walk.
    fn by_tables<'a>(&'a self, mappings: &'a Mappings) -> ByTables<'a> {
        // Without the `vsyscall` page: no code runs there, and the walk compares addresses as
        // signed numbers.
        let is_of_kernel = |number: &usize| {
            let mapping = mappings.get(number - 1);
            mapping.is_some_and(|mapping| mapping.end > i64::MAX as u64)
        };
        let all = mappings.len();
        let of_kernel = (1..=all).rev().take_while(is_of_kernel).count();
        ByTables {
            mappings,
            tables: &self.tables,
            count: all - of_kernel,
        }
    }

    /// Returns the tables, for statistics.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    fn publish(&mut self, pid: u32, user: u32, mappings: &Arc<Mappings>, now_ns: u64) {
        let is_there = self.tables.publish(pid, user, &layout(mappings), now_ns);
        self.shares.note(pid, user, is_there, now_ns);
        let known = self.published.entry(pid).or_default();
        known.push(is_there.then(|| mappings.clone()));
    }

    /// Whether a process is not walked because its user's processes have used up their share.
    pub fn is_over_share(&self, pid: u32) -> bool {
        self.shares.contains(pid)
    }

    /// Returns the users for whom something is left out now, and what.
    pub fn over_share(&self) -> Vec<OverShare> {
        let of = |what| move |(user, count)| OverShare { user, what, count };
        let processes = self.shares.by_user().into_iter().map(of(Scarce::Mappings));
        let copies = self
            .given_up
            .iter()
            .map(|(user, count)| (*user, *count))
            .map(of(Scarce::Stacks));
        let mut all = self.tables.over_share();
        all.extend(processes.chain(copies));
        all
    }

    fn forget(&mut self, pid: u32, now_ns: u64) {
        let Some(known) = self.published.get_mut(&pid) else {
            return;
        };
        if known.in_place().is_some() {
            self.tables.unpublish(pid, now_ns);
            known.push(None);
        }
    }

    /// Whether the table of every file that a process maps is known, or known not to exist. For a
    /// file that could not be opened nothing more will be known.
    fn has_tables(&self, mappings: &Mappings) -> bool {
        files(mappings).all(|file| self.is_settled(file))
    }

    /// Whether a file has a table, or will have none.
    fn is_settled(&self, file: ModuleId) -> bool {
        !self.unknown.contains_key(&file) && !self.dropped.contains(file)
    }
}

/// Returns the first frame of a walk whose call had not returned when the stack was read again: its
/// part of the stack and the return address below are the same.
fn same_frames(starts: &[u64], stack: &StackCopy, later: &Later) -> usize {
    let is_same = |(number, start): (usize, &u64)| {
        let offset = start.wrapping_sub(stack.registers.sp);
        let needed = if number == 0 {
            0
        } else {
            offset.wrapping_sub(8)
        };
        needed >= later.same_from
    };
    starts
        .iter()
        .enumerate()
        .position(is_same)
        .unwrap_or(starts.len())
}

/// Returns how many bytes of copies each user has to give up, so that `max` remain: the user with
/// most comes first.
fn surplus_by_user(held: &VecDeque<Held>, max: usize) -> HashMap<u32, usize> {
    let mut bytes: HashMap<u32, usize> = HashMap::new();
    for held in held {
        *bytes.entry(held.located.user).or_default() += held.stack.bytes.size();
    }
    surplus(bytes, max)
}

fn surplus(bytes: HashMap<u32, usize>, max: usize) -> HashMap<u32, usize> {
    let mut left: usize = bytes.values().sum::<usize>().saturating_sub(max);
    let mut falling: Vec<(u32, usize)> = bytes.into_iter().collect();
    falling.sort_unstable_by_key(|(user, bytes)| (Reverse(*bytes), *user));
    let mut given = HashMap::new();
    for (user, bytes) in falling {
        let most = bytes.saturating_sub(max / SHARES);
        let gives = left.min(most);
        if gives > 0 {
            given.insert(user, gives);
        }
        left -= gives;
    }
    given
}

/// Returns the files of mappings. One file is often mapped several times in a row, or thousands of
/// times, and is returned once then.
fn files(mappings: &Mappings) -> impl Iterator<Item = ModuleId> {
    let mut last = None;
    let files = mappings.iter().filter_map(file);
    files.filter(move |file| last.replace(*file) != Some(*file))
}

/// The file whose table is used in a mapping.
fn file(mapping: &Mapping) -> Option<ModuleId> {
    match mapping.backing {
        Backing::Module(module) | Backing::Trampolines { table: module, .. } => Some(module),
        Backing::Anonymous => None,
    }
}

fn layout(mappings: &Mappings) -> Vec<MappedRange> {
    mappings.iter().map(range).collect()
}

fn range(mapping: &Mapping) -> MappedRange {
    MappedRange {
        start: mapping.start,
        end: mapping.end,
        file_offset: match mapping.backing {
            Backing::Trampolines { base, .. } => mapping.start - base,
            Backing::Module(_) | Backing::Anonymous => mapping.file_offset,
        },
        file: file(mapping),
    }
}

/// The mappings of a process, with the current tables.
struct ByTables<'a> {
    mappings: &'a Mappings,
    tables: &'a Tables,
    count: usize,
}

impl native::Mapped for ByTables<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn start(&self, number: usize) -> Option<u64> {
        Some(self.mappings.get(number)?.start)
    }

    fn mapping(&self, number: usize) -> Option<table::Mapping> {
        Some(self.tables.mapping(&range(self.mappings.get(number)?)))
    }
}

/// The vDSO is the same in every 64-bit process; that of this process can be read.
fn own_vdso() -> Option<Arc<[u8]>> {
    let pid = std::process::id();
    // Reading the test's own process does not have to wait.
    let files = Files::default();
    let own = crate::proc_maps::read(pid, &files).ok()?;
    let vdso = own.iter().find(|line| line.path == b"[vdso]")?;
    let len = u32::try_from(vdso.end - vdso.start).ok()?;
    Some(files.memory(pid, vdso.start, len).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_most_gives_up_first_and_nobody_below_a_share() {
        let check = |bytes: &[(u32, usize)], expected: &[(u32, usize)]| {
            let given = surplus(bytes.iter().copied().collect(), 800);
            assert_eq!(given, expected.iter().copied().collect(), "{bytes:?}");
        };
        check(&[(1, 790), (2, 10)], &[]);
        check(&[(1, 790), (2, 60)], &[(1, 50)]);
        check(&[(1, 600), (2, 400), (3, 100)], &[(1, 300)]);
        check(&[(1, 700), (2, 700), (3, 100)], &[(1, 600), (2, 100)]);
    }

    #[test]
    fn a_stack_through_a_file_without_its_table_yet_is_told_from_others() {
        let limits = crate::tables::Limits {
            cache_base: None,
            ..Default::default()
        };
        let tables = Tables::new(crate::tables::TableMaps::in_memory(), &limits).unwrap();
        let mut unwinding = Unwinding::new(tables, 100);
        let mut mappings = Mappings::default();
        for (number, start) in [(1, 0x1000), (2, 0x2000)] {
            mappings.insert(Mapping {
                start,
                end: start + 0x1000,
                file_offset: 0,
                backing: Backing::Module(ModuleId(number)),
            });
        }
        let stack = [0x1800, 0x2800].map(UserFrame::return_address);
        assert!(!unwinding.is_before_tables(&stack, &mappings));
        let job = Job {
            file: ModuleId(2),
            content: Content::Bytes(Arc::default()),
            hotness: 0,
            user: 0,
            wanted_by: 0,
        };
        unwinding.unknown.insert(ModuleId(2), job);
        assert!(unwinding.is_before_tables(&stack, &mappings));
        // The first byte of a file is after the last one of its caller.
        let edge = [UserFrame::return_address(0x2000)];
        assert!(!unwinding.is_before_tables(&edge, &mappings));
        assert!(!unwinding.is_before_tables(&stack[..1], &mappings));
    }

    #[test]
    fn a_walk_used_what_was_in_place_then() {
        let [first, second] = [(); 2].map(|()| Arc::new(Mappings::default()));
        let mut published = Published::default();
        assert!(published.at(u64::MAX).is_none());
        published.push(Some(first.clone()));
        published.push(None);
        published.push(Some(second.clone()));
        let since = |index: usize| published.0[index].0;
        let is = |found: Option<&Arc<Mappings>>, list| found.is_some_and(|f| Arc::ptr_eq(f, list));
        // A walk before the first list is in place is done without one.
        assert!(published.at(since(0) - 1).is_none());
        assert!(is(published.at(since(0)), &first));
        assert!(is(published.at(since(1) - 1), &first));
        let mut inherited = Published::default();
        inherited.push_since(0, Some(first.clone()));
        inherited.push(Some(second.clone()));
        assert!(is(inherited.at(0), &first));
        assert!(is(inherited.in_place(), &second));
        assert!(published.at(since(2) - 1).is_none());
        assert!(is(published.at(since(2)), &second));
        assert!(is(published.in_place(), &second));
        for _ in 0..2 * LISTS_MAX {
            published.push(None);
        }
        assert_eq!(published.0.len(), LISTS_MAX);
    }
}
