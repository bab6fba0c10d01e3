//! Python's own frames: finds processes that run Python, gives the kernel side what it needs to
//! walk their frames, and puts the frames into the stacks.
//!
//! ```text
//!  mapping of an interpreter ─► version, layout, threads ─► BPF maps
//!  record: native frames, code objects ─► names, from memory ─► one stack
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `process` | the state of one process: its layout, its threads |
//! | `reading` | asks what files and processes have, on a thread of its own |
//! | `unanswered` | files that are asked about again |
//! | `memories` | the memory of processes, opened once for each |
//! | `tids` | maps threads of the interpreter to threads of the kernel |
//! | `codes` | the code objects of a process, each read once |
//! | `names` | numbers for functions and lines, for the whole run |
//! | `task` | decodes the task of asyncio that a thread ran |
//! | `later` | reads frames after their sample, without BPF |
//! | `merge` | replaces the interpreter's frames by Python frames |
//! | `maps` | the BPF maps |
//! | `trampolines` | mappings with the code of `-X perf` |
//! | `budget` | limits what is requested in one turn |
//!
//! A sample whose code objects are still being read waits for them a little.

mod budget;
mod codes;
mod later;
mod maps;
mod memories;
mod merge;
mod names;
mod process;
mod reading;
mod task;
mod tids;
mod trampolines;
mod unanswered;

use crate::aside::Aside;
use crate::decode::{Later, RawSample};
use crate::events::Event as EventKind;
use crate::ids::ModuleId;
use crate::mappings::{Backing, Mappings};
use crate::modules::Modules;
use crate::sample::{
    Frame, Missing, Module, ModuleKind, OverShare, PythonStack, PythonStats, Sample, Scarce,
};
use crate::sideband::record::{Event, What};
use crate::stack::StackCopy;
use budget::Budget;
use codes::RecordPart;
use foldhash::{HashMap, HashMapExt as _};
use memories::Subject;
use merge::{Entries, FrameRole, Merged};
use names::Registry;
use probe_ebpf::python::status;
use process::Process;
use reading::{Came, Look, Wanted, WantedFile};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use symbolize::python::{Interpreter, TaskLayout, Trampoline};
use unanswered::UnansweredFiles;

pub use later::walk_anything;
pub use maps::PythonMaps;

/// All Python processes of this machine.
pub struct Python {
    maps: PythonMaps,
    /// The files that are interpreters.
    interpreters: HashMap<ModuleId, Arc<Interpreter>>,
    /// The files that have asyncio's part in C, and the positions of tasks that they contain.
    asyncio: HashMap<ModuleId, Option<TaskLayout>>,
    /// The files that are asked about again.
    unanswered: UnansweredFiles,
    processes: HashMap<u32, Process>,
    /// Mappings of processes that contain no interpreter.
    without: HashMap<u32, Arc<Mappings>>,
    names: Registry,
    budget: Budget,
    /// The thread that reads; `None` if it could not be started: then no frames of Python are
    /// shown.
    reading: Option<Aside<Wanted, Came>>,
    /// Whether a process that was inspected in this turn is not ready yet.
    is_meeting: bool,
    /// Number of refused requests for users for whom too much was being read already.
    refused: BTreeMap<u32, usize>,
    /// Mappings of processes that are to be marked as having trampolines.
    unmarked: Vec<(u32, u64, Trampoline)>,
    stats: PythonStats,
}

/// The Python frames of a sample, as far as they have been read.
#[derive(Debug, Clone, Default)]
pub struct PythonParts {
    parts: Vec<RecordPart>,
    /// Why some or all are missing.
    missing: Option<Missing>,
    /// Whether the process runs Python at all.
    is_python: bool,
    /// The name that the program has given to the thread.
    thread_name: Option<Arc<str>>,
}

impl PythonParts {
    /// Returns the name that the program has given to the thread.
    pub fn thread_name(&self) -> Option<&Arc<str>> {
        self.thread_name.as_ref()
    }

    /// Whether all of them have been read.
    pub fn are_read(&self) -> bool {
        self.parts.iter().all(|part| match part {
            RecordPart::Unread(_, code) => code.is_read(),
            RecordPart::Awaiting(_, at) => match at.as_deref() {
                Some(RecordPart::Unread(_, code)) => code.is_read(),
                _ => true,
            },
            RecordPart::Frame(_)
            | RecordPart::Task(_)
            | RecordPart::Several(_)
            | RecordPart::GroupEnd => true,
        })
    }
}

impl Python {
    /// Starts without processes; informs the kernel side through these maps.
    pub fn new(maps: PythonMaps) -> Self {
        Self {
            maps,
            interpreters: HashMap::new(),
            asyncio: HashMap::new(),
            unanswered: UnansweredFiles::default(),
            processes: HashMap::new(),
            without: HashMap::new(),
            names: Registry::default(),
            budget: Budget::default(),
            reading: reading::start(),
            is_meeting: false,
            refused: BTreeMap::new(),
            unmarked: Vec::new(),
            stats: PythonStats::default(),
        }
    }

    /// Walks the frames of a sample, if the kernel side does not. Has to be called as soon as the
    /// sample was read.
    pub fn walk(&mut self, raw: &mut RawSample, copy: &StackCopy) {
        self.maps.walk(raw, copy);
    }

    /// Begins a turn, which has its own budget. Processes what was read.
    pub fn begin_turn(&mut self, now_ns: u64) {
        self.budget.begin_turn();
        let answers = self.reading.iter().flat_map(Aside::answers);
        for came in answers {
            match came {
                Came::File {
                    module,
                    interpreter,
                    asyncio,
                } => {
                    self.unanswered.remove(module);
                    self.asyncio.extend(asyncio.map(|it| (module, it)));
                    if let Some(interpreter) = interpreter {
                        self.interpreters.insert(module, interpreter);
                        // Some of those may have the new interpreter.
                        self.without.clear();
                    }
                }
                Came::Unanswered(file) => self.unanswered.add(file, now_ns),
                Came::Trampolines { pid, start, kind } => {
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.trampolines.set(start, kind);
                        self.unmarked.push((pid, start, kind));
                    }
                }
                Came::Look {
                    pid,
                    ticket,
                    seen,
                    is_there,
                } => {
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.apply(&ticket, seen, is_there, &mut self.maps, now_ns);
                    }
                }
            }
        }
        for file in self.unanswered.take_due(now_ns) {
            self.ask_about(file, now_ns);
        }
    }

    /// Checks whether a new file that may be a part of Python is one.
    pub fn add_module(&mut self, module: &Module, now_ns: u64) {
        let ModuleKind::File {
            path,
            file: Some(file),
            ..
        } = &module.kind
        else {
            return;
        };
        let name = path.file_name().unwrap_or_default().as_bytes();
        let wanted = WantedFile {
            module: module.id,
            user: module.user,
            file: file.clone(),
            name: name.to_vec(),
        };
        self.ask_about(wanted, now_ns);
    }

    /// Applies the end or exec of a process.
    pub fn apply(&mut self, event: &Event) {
        match event.what {
            What::Comm {
                pid,
                tid,
                exec: true,
                ..
            } if pid == tid => self.forget(pid),
            What::Exit { pid, tid } if pid == tid => self.forget(pid),
            _ => {}
        }
    }

    /// Removes processes that are no longer known.
    pub fn sweep(&mut self, is_known: impl Fn(u32) -> bool) {
        let gone: Vec<u32> = self
            .processes
            .keys()
            .copied()
            .filter(|pid| !is_known(*pid))
            .collect();
        for pid in gone {
            self.forget(pid);
        }
        self.without.retain(|pid, _| is_known(*pid));
    }

    /// Begins the inspection of all processes that are starting.
    pub fn begin_meeting(&mut self) {
        self.is_meeting = false;
    }

    /// Inspects whether a process that is starting runs Python, before it is sampled. Returns false
    /// if there is nothing more to find out. `user` is only called for a process that runs Python.
    pub fn inspect_process(
        &mut self,
        pid: u32,
        mappings: &Arc<Mappings>,
        user: impl FnOnce() -> u32,
        now_ns: u64,
    ) -> bool {
        self.add_process(pid, mappings, user);
        let Some(process) = self.processes.get_mut(&pid) else {
            // It may still map an interpreter, or one may be recognized.
            return true;
        };
        process.find_asyncio(mappings, &self.asyncio, &mut self.maps);
        let look = process.inspect(&mut self.budget, now_ns);
        let is_starting = process.is_starting() || process.is_awaited(now_ns);
        self.is_meeting |= is_starting;
        let user = process.user();
        if let Some(look) = look {
            self.ask(user, look);
        }
        is_starting
    }

    /// Whether a process that is starting has an interpreter that is not ready yet.
    pub fn is_meeting(&self) -> bool {
        self.is_meeting
    }

    /// Returns the Python frames in a sample of a process of a user. Requests what is not known of
    /// them. Has to be called soon after the sample was taken, as a code object may be freed.
    pub fn read(
        &mut self,
        raw: &RawSample,
        mappings: &Arc<Mappings>,
        user: u32,
        modules: &mut Modules,
        now_ns: u64,
    ) -> PythonParts {
        if self.interpreters.is_empty() {
            return PythonParts::default();
        }
        self.add_process(raw.tgid, mappings, || user);
        let Some(process) = self.processes.get_mut(&raw.tgid) else {
            return PythonParts::default();
        };
        process.find_asyncio(mappings, &self.asyncio, &mut self.maps);
        let budget = &mut self.budget;
        let look = process.follow(raw, budget, now_ns);
        let (parts, codes) = process.parts(raw, modules, &mut self.names, budget);
        let missing = match raw.python.status {
            _ if raw.wait.is_some_and(|wait| wait.is_open) => Some(Missing::Waits),
            status::WHOLE if process.is_nested(raw.tid) => Some(Missing::Nested),
            status::WHOLE => None,
            status::NO_PYTHON => Some(match process.lack() {
                Some(_) => Missing::NotWalked,
                None => Missing::Early,
            }),
            status::TOO_DEEP => Some(Missing::TooDeep),
            status::UNREADABLE => Some(Missing::Unreadable),
            status::MOVED => Some(Missing::Moved),
            // A thread that has never run Python has no frames of it.
            _ => Some(Missing::NoThread),
        };
        if raw.event == EventKind::Tick
            && let Some(has_lock) = process.has_lock(raw)
        {
            self.stats.lock_known += 1;
            self.stats.lock_held += u64::from(has_lock);
        }
        let user = process.user();
        let thread_name = process.name(raw.tid);
        let met = process.trampolines.inspect(&raw.user, mappings, now_ns);
        let unmarked = met.unmarked.into_iter();
        let pid = raw.tgid;
        self.unmarked
            .extend(unmarked.map(|(start, kind)| (pid, start, kind)));
        let wanted = met.wanted.into_iter();
        let wanted: Vec<_> = wanted.map(|start| process.trampolines_at(start)).collect();
        for wanted in wanted {
            self.ask(user, wanted);
        }
        if let Some(look) = look {
            self.ask(user, look);
        }
        if codes.is_some_and(|codes| !self.ask(user, codes))
            && let Some(process) = self.processes.get_mut(&raw.tgid)
        {
            process.is_refused();
        }
        PythonParts {
            parts,
            missing,
            is_python: true,
            thread_name,
        }
    }

    /// Returns mappings of processes in which trampolines were found: process, start, kind.
    pub fn take_unmarked(&mut self) -> Vec<(u32, u64, Trampoline)> {
        std::mem::take(&mut self.unmarked)
    }

    /// Puts the Python frames of a sample into its stack. What was not read has no name.
    pub fn merge(
        &mut self,
        sample: &mut Sample,
        python: &PythonParts,
        later: Option<Later>,
        mappings: &Mappings,
        modules: &mut Modules,
    ) {
        let mut entries = Entries::default();
        for part in &python.parts {
            match part {
                RecordPart::Frame(frame) => entries.push(*frame),
                RecordPart::Unread(entry, code) => {
                    let frame = code.frame(*entry, modules, &mut self.names);
                    frame.into_iter().for_each(|frame| entries.push(frame));
                }
                RecordPart::Task(name) => {
                    let coroutine = entries.last();
                    let task = coroutine.and_then(|it| self.names.task(it, name.as_ref(), modules));
                    task.into_iter().for_each(|frame| entries.push(frame));
                }
                RecordPart::Awaiting(name, at) => {
                    let at = match at.as_deref() {
                        Some(RecordPart::Frame(frame)) => Some(*frame),
                        Some(RecordPart::Unread(entry, code)) => {
                            code.frame(*entry, modules, &mut self.names)
                        }
                        _ => None,
                    };
                    entries.push(self.names.awaiting(at, name.as_ref(), modules));
                }
                RecordPart::Several(count) => entries.push(self.names.several(*count, modules)),
                RecordPart::GroupEnd => entries.end_group(),
            }
        }
        let python = PythonStack {
            groups: entries.groups(),
            missing: python.missing,
            is_python: python.is_python,
            same_frames_from: later.map(|later| later.same_frames_from),
            is_running: later.is_none_or(|later| later.is_running),
        };
        let anonymous = modules.anonymous_of(sample.process);
        let is_trampoline = |address| {
            let mapping = mappings.find(address);
            mapping.is_some_and(|it| matches!(it.backing, Backing::Trampolines { .. }))
        };
        let place = |frame: &Frame| match self.interpreters.get(&frame.module) {
            Some(it) if it.is_evaluation(frame.address) => FrameRole::Loop,
            Some(it) if it.is_glue(frame.address) => FrameRole::Glue,
            Some(_) => FrameRole::Inside,
            None if Some(frame.module) == anonymous && is_trampoline(frame.address) => {
                FrameRole::Trampoline
            }
            None => FrameRole::Outside,
        };
        match merge::merge(sample, &python, place) {
            Merged::NoPython => {}
            Merged::Whole => self.stats.whole += 1,
            Merged::Later => {
                self.stats.whole += 1;
                self.stats.later += 1;
            }
            Merged::Missing(why) => *self.stats.missing.entry(why).or_default() += 1,
        }
    }

    /// Returns counts for the diagnosis of a run.
    pub fn stats(&self) -> PythonStats {
        let mut stats = self.stats.clone();
        let lacks = self.processes.values().filter_map(Process::lack);
        stats.set_lacks(lacks);
        stats.processes = self.processes.values().filter(|it| it.is_walked()).count();
        stats
    }

    /// Returns a descriptor that becomes readable when something requested was read.
    pub fn answers(&self) -> Option<BorrowedFd<'_>> {
        self.reading.as_ref().map(Aside::as_fd)
    }

    /// Returns the users who have requested more than is read, and how much was left out.
    pub fn over_share(&self) -> impl Iterator<Item = OverShare> + '_ {
        self.refused.iter().map(|(user, count)| OverShare {
            user: *user,
            what: Scarce::Python,
            count: *count,
        })
    }

    /// Requests something; returns false if too much is being read for that user.
    fn ask(&mut self, user: u32, wanted: Wanted) -> bool {
        let reading = self.reading.as_ref();
        let is_asked = reading.is_some_and(|reading| reading.ask(user, wanted));
        if !is_asked {
            *self.refused.entry(user).or_default() += 1;
        }
        is_asked
    }

    /// Requests what a file has; later, if too much is being read for its user.
    fn ask_about(&mut self, file: WantedFile, now_ns: u64) {
        if !self.ask(file.user, Wanted::File(file.clone())) {
            self.unanswered.add(file, now_ns);
        }
    }

    /// Checks whether an unknown process has an interpreter, once for its mappings.
    fn add_process(&mut self, pid: u32, mappings: &Arc<Mappings>, user: impl FnOnce() -> u32) {
        let without = self.without.get(&pid);
        let is_known = without.is_some_and(|known| Arc::ptr_eq(known, mappings));
        if is_known || self.processes.contains_key(&pid) {
            return;
        }
        match self.find(mappings) {
            Some((interpreter, runtime)) => {
                let look = Look {
                    subject: Arc::new(Subject { pid }),
                    interpreter,
                    runtime,
                };
                self.without.remove(&pid);
                self.processes.insert(pid, Process::new(look, user()));
            }
            None => _ = self.without.insert(pid, mappings.clone()),
        }
    }

    /// Returns the interpreter of a process, and the address of its state.
    fn find(&self, mappings: &Mappings) -> Option<(Arc<Interpreter>, u64)> {
        mappings.iter().find_map(|mapping| {
            let Backing::Module(module) = mapping.backing else {
                return None;
            };
            let interpreter = self.interpreters.get(&module)?;
            let place = symbolize::Mapping {
                start: symbolize::ProcessAddr(mapping.start),
                end: symbolize::ProcessAddr(mapping.end),
                file_offset: symbolize::FileOffset(mapping.file_offset),
            };
            Some((interpreter.clone(), interpreter.runtime_at(&place)?))
        })
    }

    fn forget(&mut self, pid: u32) {
        self.without.remove(&pid);
        if let Some(mut process) = self.processes.remove(&pid) {
            process.withdraw(&mut self.maps);
        }
    }
}
