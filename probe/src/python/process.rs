//! One process that runs Python: what the kernel side is told of it.

use super::budget::Budget;
use super::codes::Codes;
use super::maps::PythonMaps;
use super::merge::Entries;
use super::names::Registry;
use super::tids;
use crate::decode::RawSample;
use crate::modules::Modules;
use probe_ebpf::python::{self, NONE, ThreadState, status, style};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use symbolize::Files;
use symbolize::python::{Groups, Interpreter, Lack, Layout, memory_of, read_threads};

/// How soon a process is looked at once more that was not ready, or has a new thread; each
/// time that it was of no use the wait is twice as long, up to the second.
const AGAIN_NS: u64 = 50_000_000;
const AGAIN_MAX_NS: u64 = 5_000_000_000;

/// Threads of a process that have ended, and that its interpreter still has.
const ENDED_MAX: usize = 64;

/// What is known of a process before it is looked at.
pub struct Look {
    pub pid: u32,
    pub interpreter: Arc<Interpreter>,
    /// Where its `_PyRuntime` is.
    pub runtime: u64,
}

/// A process with an interpreter.
pub struct Process {
    look: Look,
    state: State,
    threads: HashMap<u32, ThreadState>,
    /// Threads that have never run Python, when its threads were read last.
    foreign: HashSet<u32>,
    /// Not before that it is looked at once more.
    again_ns: u64,
    wait_ns: u64,
    codes: Codes,
}

enum State {
    New,
    Walked(Layout),
    Lacking(Lack),
}

impl Process {
    pub fn new(look: Look) -> Self {
        Self {
            look,
            state: State::New,
            threads: HashMap::new(),
            foreign: HashSet::new(),
            again_ns: 0,
            wait_ns: AGAIN_NS,
            codes: Codes::default(),
        }
    }

    /// Why its frames are not walked.
    pub fn lack(&self) -> Option<Lack> {
        match self.state {
            State::Lacking(lack) => Some(lack),
            _ => None,
        }
    }

    pub fn is_walked(&self) -> bool {
        matches!(self.state, State::Walked(_))
    }

    /// A sample was taken of it: tells the kernel side what that did not know.
    pub fn follow(
        &mut self,
        raw: &RawSample,
        maps: &mut PythonMaps,
        way: &Files,
        budget: &mut Budget,
        now_ns: u64,
    ) {
        let is_wanted = match self.state {
            State::New => true,
            State::Lacking(Lack::UnknownVersion(_) | Lack::FreeThreaded) => false,
            State::Lacking(_) => true,
            State::Walked(_) => {
                let status = raw.python.status;
                let is_unknown = status == status::NO_THREAD && !self.foreign.contains(&raw.tid);
                is_unknown || status == status::STALE
            }
        };
        if !is_wanted || now_ns < self.again_ns || !budget.take_look() {
            return;
        }
        let known = self.threads.contains_key(&raw.tid);
        match self.look_at(maps, way) {
            Ok(layout) => self.state = State::Walked(layout),
            Err(lack) => {
                self.withdraw(maps);
                // What has ended, and has no memory any more, lacks nothing.
                let mappings = way.code_mappings(self.look.pid);
                let is_there = mappings.is_ok_and(|lines| !lines.is_empty());
                self.state = if is_there {
                    State::Lacking(lack)
                } else {
                    State::New
                };
            }
        }
        let is_news = !known && self.threads.contains_key(&raw.tid);
        self.wait_ns = match is_news {
            true => AGAIN_NS,
            false => (2 * self.wait_ns).min(AGAIN_MAX_NS),
        };
        self.again_ns = now_ns + self.wait_ns;
    }

    /// Takes everything of it from the kernel side.
    pub fn withdraw(&mut self, maps: &mut PythonMaps) {
        maps.remove_process(self.look.pid);
        for (tid, _) in self.threads.drain() {
            maps.remove_thread(tid);
        }
    }

    /// The frames of a sample by their names.
    pub fn resolve(
        &mut self,
        raw: &RawSample,
        modules: &mut Modules,
        names: &mut Registry,
        budget: &mut Budget,
    ) -> Entries {
        let State::Walked(layout) = &self.state else {
            return Entries::default();
        };
        let way = modules.way().clone();
        let memory = memory_of(self.look.pid, &way);
        let mut entries = Entries::default();
        for entry in &raw.python.entries {
            if entry.is_frame() {
                let frame = self
                    .codes
                    .frame(*entry, layout, &memory, modules, names, budget);
                frame.into_iter().for_each(|frame| entries.push(frame));
            }
            if entry.ends_group() {
                entries.end_group();
            }
        }
        entries
    }

    fn look_at(&mut self, maps: &mut PythonMaps, way: &Files) -> Result<Layout, Lack> {
        let Look {
            pid,
            interpreter,
            runtime,
        } = &self.look;
        let memory = memory_of(*pid, way);
        let layout = match self.state {
            State::Walked(layout) => layout,
            _ => Layout::of(interpreter.version, &memory, *runtime)?,
        };
        let tids = tids::of_process(*pid);
        let threads = read_threads(&memory, *runtime, &layout, tids.len() + ENDED_MAX)?;
        let mut found = HashMap::new();
        for thread in &threads {
            if let Some(tid) = tids::find(thread, &tids, *pid, way) {
                let state = ThreadState {
                    address: thread.state,
                    identity: thread.tid.unwrap_or(thread.pthread),
                };
                found.insert(tid, state);
            }
        }
        // A child that was forked by another thread's code still has its parent's numbers.
        if let ([thread], 1, true) = (&threads[..], tids.len(), found.is_empty()) {
            let state = ThreadState {
                address: thread.state,
                identity: thread.tid.unwrap_or(thread.pthread),
            };
            found.extend(tids.values().map(|tid| (*tid, state)));
        }
        if found.is_empty() {
            return Err(Lack::Implausible("threads of Python"));
        }
        for tid in self.threads.keys().filter(|tid| !found.contains_key(tid)) {
            maps.remove_thread(*tid);
        }
        for (tid, state) in &found {
            if self.threads.get(tid) != Some(state) {
                maps.set_thread(*tid, *state);
            }
        }
        self.foreign = tids
            .into_values()
            .filter(|tid| !found.contains_key(tid))
            .collect();
        self.threads = found;
        if !matches!(self.state, State::Walked(_)) {
            maps.add_process(self.look.pid, &for_kernel(&layout));
        }
        Ok(layout)
    }
}

/// The layout as the kernel side wants it.
fn for_kernel(layout: &Layout) -> python::Layout {
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
    python::Layout {
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
        reserved: 0,
    }
}
