//! Counts sampled stacks of calls, and names their frames.
//!
//! Stacks are stored as addresses and named only when they are shown: a function may be called from
//! thousands of places, of which a user sees a dozen. Two stacks with the same names are one row,
//! as calls from two places of one function need not be distinguished.

use super::Stack;
use crate::naming::NamedModule;
use crate::probes::finder::NamedFrames;
use crate::probes::shown::{Shares, folded};
use crate::probes::{Found, Recorder, Track};
use profile::ModuleId;
use profile::few;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of different stacks, and of threads, that are kept of one probe.
const STACKS_MAX: usize = 4_000;
const THREADS_MAX: usize = 4_000;

/// Number of stacks of a probe that are named, and number of those that are shown.
const STACKS_NAMED: usize = 200;
const STACKS_SHOWN: usize = 12;
const THREADS_SHOWN: usize = 6;

/// Maximum number of names that are kept; when there are more, all are requested again.
const NAMES_MAX: usize = 50_000;

/// A frame: its module and its address there.
type Frame = (ModuleId, u64);

/// The callers of a function.
#[derive(Default)]
pub struct Callers {
    /// Number of each stack: frames without the function itself, innermost first.
    stacks: HashMap<Box<[Frame]>, u64>,
    /// The modules of all frames, for requesting their names.
    modules: HashMap<ModuleId, Arc<NamedModule>>,
    threads: HashMap<(u32, Arc<str>), u64>,
    /// Number of stacks that arrived, including those without room: the base of shares.
    all: u64,
    /// Number of stacks for which there was no room.
    pub lost: u64,
    /// Number of stacks that do not reach their thread's first function.
    pub cut: u64,
}

impl Callers {
    /// Counts one stack and its thread.
    pub fn take(&mut self, stack: Stack, found: &Found) {
        self.all += 1;
        self.cut += u64::from(stack.cut.is_some());
        let thread = (stack.tid, stack.comm);
        if self.threads.len() < THREADS_MAX || self.threads.contains_key(&thread) {
            *self.threads.entry(thread).or_default() += 1;
        }
        let callers = found.callers(&stack.frames, kernel_address, true).iter();
        let key: Box<[Frame]> = callers.map(|(module, at)| (module.id(), *at)).collect();
        let has_room = self.stacks.len() < STACKS_MAX;
        match self.stacks.get_mut(&key) {
            Some(count) => *count += 1,
            None if has_room => {
                for (module, _) in stack.frames {
                    self.modules.entry(module.id()).or_insert(module);
                }
                self.stacks.insert(key, 1);
            }
            None => self.lost += 1,
        }
    }

    /// Number of stacks that arrived.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// The most frequent stacks.
    fn first(&self) -> Vec<(&[Frame], u64)> {
        let mut all: Vec<(&[Frame], u64)> = self
            .stacks
            .iter()
            .map(|(frames, count)| (&**frames, *count))
            .collect();
        few::sort_by(&mut all, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.truncate(STACKS_NAMED);
        all
    }

    /// The most frequent stacks; those with the same names are merged.
    pub fn shares(&self, names: &Names) -> Shares {
        let mut by_names: BTreeMap<Vec<Arc<str>>, u64> = BTreeMap::new();
        for (frames, count) in self.first() {
            let name = |frame: &Frame| names.of(*frame, &self.modules);
            let names = folded(frames.iter().map(name).collect());
            *by_names.entry(names).or_default() += count;
        }
        let rows = by_names.into_iter();
        top(
            rows.map(|(names, count)| (names.into(), count)),
            STACKS_SHOWN,
            self.all,
        )
    }

    /// The threads with most calls.
    pub fn threads(&self) -> Shares {
        let rows = self.threads.iter().map(|((tid, comm), count)| {
            let who: Arc<str> = format!("{comm}[{tid}]").into();
            (Arc::from([who]), *count)
        });
        top(rows, THREADS_SHOWN, self.all)
    }
}

/// The most frequent rows, falling; equally frequent rows are sorted by name.
fn top(rows: impl Iterator<Item = (Arc<[Arc<str>]>, u64)>, count: usize, all: u64) -> Shares {
    let mut rows: Vec<_> = rows.collect();
    few::sort_by(&mut rows, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(count);
    Shares { rows, all }
}

/// The names of callers' frames.
#[derive(Default)]
pub struct Names {
    known: HashMap<Frame, Option<Arc<str>>>,
    /// Whether a request was not answered yet.
    outstanding: bool,
}

impl Names {
    /// The frames of the most frequent stacks whose names were not requested; empty while a request
    /// is unanswered.
    pub fn unknown<'c>(
        &mut self,
        all: impl Iterator<Item = &'c Callers>,
    ) -> Vec<(Arc<NamedModule>, Vec<u64>)> {
        if self.outstanding {
            return Vec::new();
        }
        if self.known.len() > NAMES_MAX {
            self.known.clear();
        }
        let mut wanted: BTreeMap<ModuleId, (Arc<NamedModule>, Vec<u64>)> = BTreeMap::new();
        for callers in all {
            let stacks = callers.first();
            for (module, at) in stacks.iter().flat_map(|(frames, _)| frames.iter()) {
                if self.known.contains_key(&(*module, *at)) {
                    continue;
                }
                if let Some(named) = callers.modules.get(module) {
                    let entry = wanted.entry(*module);
                    let (_, addresses) = entry.or_insert_with(|| (Arc::clone(named), Vec::new()));
                    if !addresses.contains(at) {
                        addresses.push(*at);
                    }
                }
            }
        }
        self.outstanding = !wanted.is_empty();
        wanted.into_values().collect()
    }

    /// Handles the answer to the request, and names the same frames in the log.
    pub fn take(&mut self, named: Vec<NamedFrames>, recorder: &mut Recorder) {
        self.outstanding = false;
        for (module, names) in named {
            for (at, name) in names {
                let name: Option<Arc<str>> = name.map(Arc::from);
                if let Some(name) = &name {
                    recorder.name_frame((module.id().0, at), name);
                }
                self.known.insert((module.id(), at), name);
            }
        }
    }

    /// Name of a frame, or its file and address while it has none.
    fn of(&self, frame: Frame, modules: &HashMap<ModuleId, Arc<NamedModule>>) -> Arc<str> {
        if let Some(Some(name)) = self.known.get(&frame) {
            return Arc::clone(name);
        }
        let (module, at) = frame;
        let file = file_of(modules.get(&module));
        format!("{file}+{at:#x}").into()
    }
}

/// Short name of a module's file.
fn file_of(module: Option<&Arc<NamedModule>>) -> Arc<str> {
    if module.is_some_and(|module| module.is_kernel()) {
        return "[kernel]".into();
    }
    let file = module.and_then(|module| {
        let name = module.path()?.file_name()?.as_encoded_bytes();
        Some(symbolize::sanitize(name).into_owned())
    });
    file.map_or_else(|| "[no file]".into(), Arc::from)
}

/// Address of a frame, if it is in the kernel.
fn kernel_address((module, address): &(Arc<NamedModule>, u64)) -> Option<u64> {
    module.is_kernel().then_some(*address)
}

/// Counts one stack in the log.
pub fn record(stack: &Stack, found: &Found, track: &mut Track, recorder: &mut Recorder) {
    let callers = found.callers(&stack.frames, kernel_address, true).iter();
    let keys = callers.map(|(module, at)| (module.id().0, *at));
    let module = |id: u32| {
        let found = stack.frames.iter().find(|(module, _)| module.id().0 == id);
        file_of(found.map(|(module, _)| module))
    };
    recorder.take_stack(track, keys, module, (stack.tid, &stack.comm), stack.cut);
}
