//! The state of one process that runs Python, and what the kernel side gets of it.

use super::budget::Budget;
use super::codes::{Codes, RecordPart};
use super::maps::PythonMaps;
use super::names::Registry;
use super::reading::{Look, Seen, Ticket, Wanted};
use super::task::{self, Awaiting};
use super::trampolines::Trampolines;
use crate::decode::RawSample;
use crate::ids::ModuleId;
use crate::mappings::{Backing, Mappings};
use crate::modules::Modules;
use probe_ebpf::python::{self as kernel, NONE, ThreadState, lock, status, style};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use symbolize::python::{
    self, Groups, IDENTITY_REACH, Lack, Layout, TaskLayout, TaskLinks, ThreadPlace,
};

const _: () = assert!(IDENTITY_REACH as usize == kernel::CODE_BYTES);

/// How soon a process is inspected again that was not ready, or has a new thread; after each
/// useless inspection the wait is doubled, up to the second value.
const AGAIN_NS: u64 = 10_000_000;
const AGAIN_MAX_NS: u64 = 5_000_000_000;

/// For how long a new process is inspected more often than that: the first samples of a process
/// that is known a moment earlier have names, and most are ready within hundredths of a second.
const MET_NS: u64 = 100_000_000;

/// How soon names of threads are read again; each time that none is new the wait is doubled, up to
/// the second value.
const NAMES_NS: u64 = 1_000_000_000;
const NAMES_MAX_NS: u64 = 30_000_000_000;

/// How soon tasks are looked for in a process that may have loaded asyncio; each time that it has
/// not the wait is doubled, up to the second value.
const TASKS_NS: u64 = 500_000_000;
const TASKS_MAX_NS: u64 = 30_000_000_000;

/// A process with an interpreter.
pub struct Process {
    look: Look,
    /// The user to whom it is charged.
    user: u32,
    state: WalkState,
    looking: Looking,
    threads: foldhash::HashMap<u32, ThreadState>,
    /// Threads that had never run Python when the threads were last read.
    foreign: HashSet<u32>,
    /// Threads that run something that one interpreter has called in another one.
    nested: HashSet<u32>,
    /// Earliest time of the next inspection.
    again_ns: u64,
    wait_ns: u64,
    /// When it was first seen, and first walked.
    met_ns: Option<u64>,
    walked_ns: Option<u64>,
    /// Whether there was a sample with frames of Python.
    is_sampled: bool,
    threading: Vec<u64>,
    /// The names that the program has given to its threads.
    names: HashMap<u32, Arc<str>>,
    /// Earliest time at which they are read again.
    names_again_ns: u64,
    names_wait_ns: u64,
    has_one_gil: bool,
    gil: Option<u64>,
    /// Where each thread has the address of its own state, relative to its `pthread_t`.
    own_state: Option<i64>,
    /// Where asyncio keeps its tasks, if its file contains that.
    told_tasks: Option<TaskLayout>,
    /// Whether it may have loaded an asyncio whose file does not contain that.
    may_have_tasks: bool,
    /// The dictionary of the running tasks; `None` if it is unknown or not needed.
    running_tasks: Option<u64>,
    /// Earliest time at which this is looked for again.
    tasks_again_ns: u64,
    tasks_wait_ns: u64,
    /// The mappings that have no asyncio, by the files that were known.
    without_asyncio: (Weak<Mappings>, usize),
    codes: Codes,
    /// The mappings with trampolines.
    pub trampolines: Trampolines,
}

/// An inspection that is in progress.
#[derive(Default)]
struct Looking {
    /// Exists as long as the request does.
    ticket: Weak<()>,
    /// The thread for which it is done.
    tid: u32,
    /// Whether only names of threads and the position of tasks are requested.
    for_names: bool,
}

enum WalkState {
    New,
    Walked(Layout),
    Lacking(Lack),
}

impl Process {
    /// Starts with what is known before the process is inspected. `user` is charged for reading it.
    pub fn new(look: Look, user: u32) -> Self {
        Self {
            may_have_tasks: look.interpreter.has_asyncio,
            look,
            user,
            state: WalkState::New,
            looking: Looking::default(),
            threads: foldhash::HashMap::default(),
            foreign: HashSet::new(),
            nested: HashSet::new(),
            again_ns: 0,
            wait_ns: AGAIN_NS,
            met_ns: None,
            walked_ns: None,
            is_sampled: false,
            threading: Vec::new(),
            names: HashMap::new(),
            names_again_ns: 0,
            names_wait_ns: NAMES_NS,
            has_one_gil: false,
            gil: None,
            own_state: None,
            told_tasks: None,
            running_tasks: None,
            tasks_again_ns: 0,
            tasks_wait_ns: TASKS_NS,
            without_asyncio: (Weak::new(), 0),
            codes: Codes::default(),
            trampolines: Trampolines::default(),
        }
    }

    /// Returns why its frames are not walked.
    pub fn lack(&self) -> Option<Lack> {
        match self.state {
            WalkState::Lacking(lack) => Some(lack),
            _ => None,
        }
    }

    /// Whether its frames are walked: the kernel side has been given its layout.
    pub fn is_walked(&self) -> bool {
        matches!(self.state, WalkState::Walked(_))
    }

    /// Processes a sample of it: if the kernel side does not know everything that it could, returns
    /// the request to inspect the process.
    pub fn follow(&mut self, raw: &RawSample, budget: &mut Budget, now_ns: u64) -> Option<Wanted> {
        let is_wanted = match self.state {
            WalkState::New | WalkState::Lacking(_) => self.is_new(),
            WalkState::Walked(_) => {
                // A thread whose state was found by itself has no name yet.
                let is_unknown =
                    !self.threads.contains_key(&raw.tid) && !self.foreign.contains(&raw.tid);
                is_unknown || raw.python.status == status::STALE
            }
        };
        let is_early = now_ns < self.again_ns;
        let may_have_names = self.is_walked() && self.threads.len() > 1;
        let has_old_names = may_have_names && now_ns >= self.names_again_ns;
        let may_find_tasks =
            self.is_walked() && self.wants_tasks() && now_ns >= self.tasks_again_ns;
        if is_wanted && !is_early {
            self.look(raw.tid, false, budget, now_ns)
        } else if has_old_names || may_find_tasks {
            self.look(raw.tid, true, budget, now_ns)
        } else {
            None
        }
    }

    /// Returns the request to inspect a process that is starting, to see whether its interpreter is
    /// ready.
    pub fn inspect(&mut self, budget: &mut Budget, now_ns: u64) -> Option<Wanted> {
        self.met_ns.get_or_insert(now_ns);
        let is_due = self.is_starting() && now_ns >= self.again_ns;
        is_due
            .then(|| self.look(self.look.subject.pid, false, budget, now_ns))
            .flatten()
    }

    /// Whether a part of its interpreter did not exist yet at the inspection.
    pub fn is_starting(&self) -> bool {
        self.is_new() || self.is_walked() && self.gil.is_none()
    }

    /// Whether it has just become known, and its first sample with frames of Python is still to
    /// come.
    pub fn is_awaited(&self, now_ns: u64) -> bool {
        !self.is_sampled && self.walked_ns.is_some_and(|from| now_ns < from + MET_NS)
    }

    /// Whether the position of its tasks is unknown, and can be found.
    fn wants_tasks(&self) -> bool {
        // A process that is not walked yet has priority: a program has a thousand modules.
        let is_of_use = match &self.state {
            WalkState::Walked(layout) => layout.tasks.is_some(),
            WalkState::New | WalkState::Lacking(_) => false,
        };
        is_of_use && self.may_have_tasks && self.running_tasks.is_none()
    }

    /// Whether its frames may still become known.
    fn is_new(&self) -> bool {
        match self.state {
            WalkState::New => true,
            WalkState::Lacking(Lack::UnknownVersion(_) | Lack::FreeThreaded) => false,
            WalkState::Lacking(_) => true,
            WalkState::Walked(_) => false,
        }
    }

    fn look(
        &mut self,
        tid: u32,
        for_names: bool,
        budget: &mut Budget,
        now_ns: u64,
    ) -> Option<Wanted> {
        let is_under_way = self.looking.ticket.strong_count() > 0;
        if is_under_way || !budget.take_look(self.user) {
            return None;
        }
        let ticket = Ticket::default();
        self.looking = Looking {
            ticket: Arc::downgrade(&ticket),
            tid,
            for_names,
        };
        // Used if the inspection has no result.
        if for_names {
            self.names_again_ns = now_ns + AGAIN_MAX_NS;
            self.tasks_again_ns = now_ns + AGAIN_MAX_NS;
        } else {
            self.again_ns = now_ns + AGAIN_MAX_NS
        }
        let layout = match self.state {
            WalkState::Walked(layout) => Some(layout),
            _ => None,
        };
        Some(Wanted::Look {
            look: self.look.clone(),
            layout,
            threading: self.threading.clone(),
            wants_tasks: self.wants_tasks(),
            ticket,
        })
    }

    /// Applies the result of an inspection: passes what is new to the kernel side. Does nothing if
    /// another process was inspected.
    pub fn apply(
        &mut self,
        ticket: &Ticket,
        seen: Result<Seen, Lack>,
        is_there: bool,
        maps: &mut PythonMaps,
        now_ns: u64,
    ) {
        if self.looking.ticket.as_ptr() != Arc::as_ptr(ticket) {
            return;
        }
        let Looking { tid, for_names, .. } = std::mem::take(&mut self.looking);
        let known = self.threads.contains_key(&tid);
        match seen {
            Ok(seen) => {
                let is_same = seen.found.names == self.names;
                self.names_wait_ns = if is_same {
                    (2 * self.names_wait_ns).min(NAMES_MAX_NS)
                } else {
                    NAMES_NS
                };
                self.names_again_ns = now_ns + self.names_wait_ns;
                self.tasks_again_ns = now_ns + self.tasks_wait_ns;
                self.tasks_wait_ns = (2 * self.tasks_wait_ns).min(TASKS_MAX_NS);
                self.walk(seen, maps);
            }
            Err(lack) => {
                self.withdraw(maps);
                // A process that has ended, and has no memory any more, lacks nothing.
                self.state = if is_there {
                    WalkState::Lacking(lack)
                } else {
                    WalkState::New
                };
            }
        }
        // A thread that comes after that is looked for at once.
        if for_names {
            return;
        }
        let is_news = !known && self.threads.contains_key(&tid);
        let is_met = self.met_ns.is_some_and(|from| now_ns < from + MET_NS);
        if self.is_walked() {
            self.walked_ns.get_or_insert(now_ns);
        }
        self.wait_ns = if is_news || is_met {
            AGAIN_NS
        } else {
            (2 * self.wait_ns).min(AGAIN_MAX_NS)
        };
        self.again_ns = now_ns + self.wait_ns;
    }

    /// Finds out whether it has loaded asyncio since the last sample. `files` are those that have
    /// its part in C, and the positions of tasks that they contain.
    pub fn find_asyncio(
        &mut self,
        mappings: &Arc<Mappings>,
        files: &foldhash::HashMap<ModuleId, Option<TaskLayout>>,
        maps: &mut PythonMaps,
    ) {
        let (looked_at, known) = &self.without_asyncio;
        let is_old = looked_at.as_ptr() == Arc::as_ptr(mappings) && *known == files.len();
        if is_old || self.told_tasks.is_some() || files.is_empty() {
            return;
        }
        self.without_asyncio = (Arc::downgrade(mappings), files.len());
        let found = mappings.iter().find_map(|mapping| match mapping.backing {
            Backing::Module(module) => files.get(&module).copied(),
            _ => None,
        });
        if found == Some(None) && !self.may_have_tasks {
            self.may_have_tasks = true;
            self.tasks_again_ns = 0;
        }
        self.told_tasks = found.flatten();
        if self.told_tasks.is_some() {
            self.write_to(maps);
        }
    }

    /// Passes all positions to the kernel side, if they are known.
    fn write_to(&self, maps: &mut PythonMaps) {
        if let WalkState::Walked(layout) = &self.state {
            let tasks = self.tasks(layout);
            maps.add_process(
                self.look.subject.pid,
                &for_kernel(layout, self.gil, self.own_state, tasks),
            );
        }
    }

    /// Returns the position of its tasks in the kernel side's format.
    fn tasks(&self, layout: &Layout) -> kernel::TaskLayout {
        let unknown = kernel::TaskLayout::UNKNOWN;
        let (found, running_by_loop) = match (self.told_tasks, layout.tasks, self.running_tasks) {
            (Some(told), _, _) => (told, 0),
            (None, Some(found), Some(running)) => (found, running),
            _ => return unknown,
        };
        let TaskLayout {
            name,
            coroutine,
            links,
        } = found;
        let tasks = kernel::TaskLayout {
            name,
            coroutine,
            running_by_loop,
            ..unknown
        };
        match links {
            TaskLinks::Told {
                running,
                awaited_by,
                is_set,
                is_task,
            } => kernel::TaskLayout {
                running,
                awaited_by,
                is_set,
                is_task,
                ..tasks
            },
            TaskLinks::Callbacks {
                callback,
                waits_for,
                group_values,
            } => kernel::TaskLayout {
                callback,
                waits_for,
                group_values: group_values.unwrap_or(NONE),
                ..tasks
            },
        }
    }

    /// Removes it from the kernel side.
    pub fn withdraw(&mut self, maps: &mut PythonMaps) {
        maps.remove_process(self.look.subject.pid);
        for (tid, _) in self.threads.drain() {
            maps.remove_thread(tid);
        }
    }

    /// Returns the frames of a sample, and what is to be read before they have names.
    pub fn parts(
        &mut self,
        raw: &RawSample,
        modules: &mut Modules,
        names: &mut Registry,
        budget: &mut Budget,
    ) -> (Vec<RecordPart>, Option<Wanted>) {
        let WalkState::Walked(layout) = self.state else {
            return (Vec::new(), None);
        };
        let (mut parts, mut wanted) = (Vec::new(), Vec::new());
        let (mut entries, tasks) = task::split(&raw.python.entries);
        self.is_sampled |= !entries.is_empty();
        if layout.frame.has_base
            && raw.python.status == status::WHOLE
            && let Some((_base, before)) = entries.split_last()
        {
            entries = before;
        }
        let mut part = |codes: &mut Codes, entry| {
            let may_read = || budget.take_code(self.user);
            codes.part(entry, modules, names, may_read, &mut wanted)
        };
        for entry in entries {
            if entry.is_frame() {
                parts.extend(part(&mut self.codes, *entry));
            }
            if entry.ends_group() {
                // The call of the loop was made for its coroutine.
                let task = tasks.iter().find(|task| task.frame == entry.address());
                if let Some(task) = task.filter(|_| !entry.is_frame()) {
                    parts.push(RecordPart::Task(task.name.clone()));
                    parts.extend(task.awaiting.iter().map(|awaiting| match awaiting {
                        Awaiting::Task { name, at } => {
                            let at = at.and_then(|at| part(&mut self.codes, at));
                            RecordPart::Awaiting(name.clone(), at.map(Box::new))
                        }
                        Awaiting::Several(count) => RecordPart::Several(*count),
                    }));
                }
                parts.push(RecordPart::GroupEnd);
            }
        }
        let is_wanted = !wanted.is_empty();
        let wanted = is_wanted.then(|| Wanted::Codes {
            subject: self.look.subject.clone(),
            version: self.look.interpreter.version,
            layout,
            codes: wanted,
        });
        (parts, wanted)
    }

    /// Whether the thread of a sample had the global lock; `None` if that is unknown. If there are
    /// several interpreters, each may have a lock of its own, of which one is known here.
    pub fn has_lock(&self, raw: &RawSample) -> Option<bool> {
        match raw.python.lock {
            _ if !self.has_one_gil => None,
            lock::HELD => Some(true),
            lock::NOT_HELD => Some(false),
            _ => None,
        }
    }

    /// Returns the request for the kind of trampolines in the mapping that begins there.
    pub fn trampolines_at(&self, start: u64) -> Wanted {
        let subject = self.look.subject.clone();
        Wanted::Trampolines { subject, start }
    }

    /// Whether a thread was called by another interpreter, whose frames are not walked.
    pub fn is_nested(&self, tid: u32) -> bool {
        self.nested.contains(&tid)
    }

    /// Records that a request was refused because too much was being read.
    pub fn is_refused(&mut self) {
        self.codes.forget_unread();
    }

    /// Returns the name that the program has given to a thread other than its first.
    pub fn name(&self, tid: u32) -> Option<Arc<str>> {
        self.names.get(&tid).cloned()
    }

    /// The user who is charged for reading the process.
    pub fn user(&self) -> u32 {
        self.user
    }

    fn walk(&mut self, seen: Seen, maps: &mut PythonMaps) {
        let Seen { found, foreign } = seen;
        let python::Seen {
            layout,
            gil,
            own_state,
            has_one_gil,
            threads,
            nested,
            threading,
            names,
            running_tasks,
        } = *found;
        let threads: foldhash::HashMap<u32, ThreadState> = threads
            .into_iter()
            .map(|(tid, place)| (tid, state_of(place)))
            .collect();
        // In a program with several interpreters a thread has several states.
        let own_state = own_state.or(self.own_state).filter(|_| has_one_gil);
        let is_other = self.gil != gil || self.own_state != own_state || running_tasks.is_some();
        self.running_tasks = running_tasks.or(self.running_tasks);
        self.has_one_gil = has_one_gil;
        self.gil = gil;
        self.own_state = own_state;
        self.threading = threading;
        self.names = names;
        for tid in self.threads.keys().filter(|tid| !threads.contains_key(tid)) {
            maps.remove_thread(*tid);
        }
        for (tid, state) in &threads {
            if self.threads.get(tid) != Some(state) {
                maps.set_thread(*tid, *state);
            }
        }
        self.foreign = foreign;
        self.nested = nested;
        self.threads = threads;
        let is_news = is_other || !self.is_walked();
        self.state = WalkState::Walked(layout);
        if is_news {
            self.write_to(maps);
        }
    }
}

/// Returns the position of a thread's frames in the kernel side's format.
fn state_of(place: ThreadPlace) -> ThreadState {
    ThreadState {
        address: place.state,
        identity: place.identity,
    }
}

/// Returns the layout in the kernel side's format.
fn for_kernel(
    layout: &Layout,
    gil: Option<u64>,
    own_state: Option<i64>,
    tasks: kernel::TaskLayout,
) -> kernel::Layout {
    let Layout {
        thread,
        frame,
        code,
        ..
    } = layout;
    let (style, frame_owner) = match frame.groups {
        Groups::Each => (style::EACH, 0),
        Groups::Flagged(at) => (style::FLAGGED, at),
        Groups::OwnedByC(at) => (style::OWNED_BY_C, at),
    };
    kernel::Layout {
        style,
        thread_identity: thread.native_thread_id.unwrap_or(thread.thread_id),
        thread_frame: thread.frame,
        c_frame: thread.c_frame.unwrap_or(NONE),
        frame_bytes: frame.bytes,
        frame_previous: frame.previous,
        frame_code: frame.code,
        frame_instruction: frame.instruction,
        frame_owner,
        instruction_bytes: frame.instruction_bytes.unwrap_or(0),
        code_start: code.start,
        code_first_line: code.first_line,
        code_identity: code.identity,
        thread_pthread: thread.thread_id,
        own_state: own_state.unwrap_or(0),
        gil: gil.unwrap_or(0),
        tasks,
    }
}
