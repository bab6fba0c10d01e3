//! Python's own frames: which processes run Python, what the kernel side has to know to
//! walk their frames, and how those are put into the stacks.
//!
//! ```text
//!  mapping of an interpreter ─► version, layout, threads ─► BPF maps
//!  record: native frames, code objects ─► names, from memory ─► one stack
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `process` | what is known of one process: its layout, its threads |
//! | `tids` | which thread of the kernel a thread of the interpreter is |
//! | `codes` | the code objects of a process, each read once |
//! | `names` | functions and lines with a number each, for the whole run |
//! | `merge` | Python frames in the place of the interpreter's |
//! | `maps` | the BPF maps |
//! | `budget` | how much is read in one turn |

mod budget;
mod codes;
mod maps;
mod merge;
mod names;
mod process;
mod tids;

use crate::decode::RawSample;
use crate::ids::ModuleId;
use crate::mappings::{Backing, Mappings};
use crate::modules::Modules;
use crate::resolve::Located;
use crate::sample::{Frame, Missing, Module, ModuleKind, PythonStack, PythonStats, Sample};
use crate::sideband::record::{Event, What};
use budget::Budget;
use merge::{Merged, Place};
use names::Registry;
use probe_ebpf::python::status;
use process::{Look, Process};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use symbolize::object::Object;
use symbolize::python::Interpreter;

pub use maps::PythonMaps;

/// All that is known of Python on this machine.
pub struct Python {
    maps: PythonMaps,
    /// The files that are interpreters.
    interpreters: HashMap<ModuleId, Arc<Interpreter>>,
    processes: HashMap<u32, Process>,
    /// Mappings of processes that have no interpreter in them.
    without: HashMap<u32, Arc<Mappings>>,
    names: Registry,
    budget: Budget,
    stats: PythonStats,
}

impl Python {
    /// Knows nothing yet, and tells the kernel side by these maps.
    pub fn new(maps: PythonMaps) -> Self {
        Self {
            maps,
            interpreters: HashMap::new(),
            processes: HashMap::new(),
            without: HashMap::new(),
            names: Registry::default(),
            budget: Budget::default(),
            stats: PythonStats::default(),
        }
    }

    /// What follows is a turn of its own, with its own budget.
    pub fn begin_turn(&mut self) {
        self.budget.begin_turn();
    }

    /// Looks whether a new file is an interpreter.
    pub fn meet(&mut self, module: &Module) {
        let ModuleKind::File {
            path,
            file: Some(file),
            ..
        } = &module.kind
        else {
            return;
        };
        let name = path.file_name().map(|name| name.as_bytes());
        // Most files are none by their name, and are not read.
        if name.is_none_or(|name| symbolize::python::Version::of_file_name(name).is_none()) {
            return;
        }
        if let Some(found) = name.and_then(|name| interpreter(file, name)) {
            self.interpreters.insert(module.id, Arc::new(found));
        }
    }

    /// Follows processes that end or become other programs.
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

    /// Forgets processes that nobody knows any more.
    pub fn sweep(&mut self, is_known: impl Fn(u32) -> bool) {
        let gone: Vec<u32> = { self.processes.keys() }
            .copied()
            .filter(|pid| !is_known(*pid))
            .collect();
        for pid in gone {
            self.forget(pid);
        }
        self.without.retain(|pid, _| is_known(*pid));
    }

    /// What a sample says of Python frames, with their names. To be called soon after it was
    /// taken: a code object may be freed.
    pub fn read(
        &mut self,
        raw: &RawSample,
        located: &Located,
        modules: &mut Modules,
        now_ns: u64,
    ) -> PythonStack {
        if located.in_exec || self.interpreters.is_empty() {
            return PythonStack::default();
        }
        self.meet_process(raw.tgid, &located.mappings);
        let Some(process) = self.processes.get_mut(&raw.tgid) else {
            return PythonStack::default();
        };
        let budget = &mut self.budget;
        process.follow(raw, &mut self.maps, modules.way(), budget, now_ns);
        let entries = process.resolve(raw, modules, &mut self.names, budget);
        let missing = match raw.python.status {
            status::WHOLE => None,
            status::NO_PYTHON => Some(match process.lack() {
                Some(_) => Missing::NotWalked,
                None => Missing::Early,
            }),
            status::TOO_DEEP => Some(Missing::TooDeep),
            status::UNREADABLE => Some(Missing::Unreadable),
            // A thread that has never run Python needs no frames of it.
            _ => Some(Missing::NoThread),
        };
        PythonStack {
            groups: entries.groups(),
            missing,
            is_python: true,
        }
    }

    /// Puts the Python frames of a sample into its stack.
    pub fn merge(&mut self, sample: &mut Sample, python: &PythonStack) {
        let place = |frame: &Frame| match self.interpreters.get(&frame.module) {
            Some(it) if it.is_evaluation(frame.address) => Place::Loop,
            Some(it) if it.is_glue(frame.address) => Place::Glue,
            Some(_) => Place::Inside,
            None => Place::Outside,
        };
        match merge::merge(sample, python, place) {
            Merged::NoPython => {}
            Merged::Whole => self.stats.whole += 1,
            Merged::Missing(why) => *self.stats.missing.entry(why).or_default() += 1,
        }
    }

    /// Counts, for a person to judge by.
    pub fn stats(&self) -> PythonStats {
        let mut stats = self.stats.clone();
        let lacks = self.processes.values().filter_map(Process::lack);
        stats.set_lacks(lacks);
        stats.processes = self.processes.values().filter(|it| it.is_walked()).count();
        stats
    }

    /// Looks whether a process that is not known has an interpreter, once for its mappings.
    fn meet_process(&mut self, pid: u32, mappings: &Arc<Mappings>) {
        let without = self.without.get(&pid);
        let is_known = without.is_some_and(|known| Arc::ptr_eq(known, mappings));
        if is_known || self.processes.contains_key(&pid) {
            return;
        }
        match self.find(mappings) {
            Some((interpreter, runtime)) => {
                let look = Look {
                    pid,
                    interpreter,
                    runtime,
                };
                self.without.remove(&pid);
                self.processes.insert(pid, Process::new(look));
            }
            None => _ = self.without.insert(pid, mappings.clone()),
        }
    }

    /// The interpreter of a process, and where its state is.
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

fn interpreter(file: &Arc<OwnedFd>, name: &[u8]) -> Option<Interpreter> {
    let file = File::from(file.try_clone().ok()?);
    let object = Object::read(&file).ok()?;
    // A file that is damaged is no interpreter.
    Interpreter::find(&object, name).ok()?
}
