//! Reads programs and processes that run Python, on a thread of its own, because a process can
//! deliberately delay a reader of its memory.

use super::codes::{self, WantedCode};
use super::{own_state, tids};
use crate::aside::Aside;
use crate::ids::ModuleId;
use probe_ebpf::python::ThreadState;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use symbolize::parser::python_order;
use symbolize::python::{
    Interpreter, LOOKED_AT, Lack, Layout, Memory, TaskLayout, Trampoline, blocks_of,
    count_interpreters, find_gil, find_running_tasks, find_threading, memory_of, read_thread_names,
    read_threads,
};
use symbolize::{Files, Reason, sanitize};

/// Maximum time for one piece of this work on a process that answers late.
const LONGEST: Duration = Duration::from_secs(1);

/// Maximum number of threads that have ended, but are still in the interpreter's list.
const ENDED_MAX: usize = 64;

/// Maximum length of a thread's name: the kernel keeps 15 characters.
const NAME_MAX: usize = 64;

/// What is known about a process before it is inspected.
#[derive(Debug, Clone)]
pub struct Look {
    pub pid: u32,
    pub interpreter: Arc<Interpreter>,
    /// The address of its `_PyRuntime`.
    pub runtime: u64,
}

/// Held while a request is in progress, and by its answer: if it is gone and there was no answer,
/// there will be none.
pub type Ticket = Arc<()>;

/// A request about a file or a process.
pub enum Wanted {
    /// Whether a file of this name is an interpreter, and what it contains about asyncio.
    File {
        module: ModuleId,
        file: Arc<OwnedFd>,
        name: Vec<u8>,
    },
    /// The threads of a process, and what is not known of it yet.
    Look {
        look: Look,
        layout: Option<Layout>,
        threading: Vec<u64>,
        /// Whether the position of its tasks is unknown, and may be found.
        wants_tasks: bool,
        ticket: Ticket,
    },
    /// Whether the mapping of a process that begins there has trampolines.
    Trampolines { pid: u32, start: u64 },
    /// Code objects of a process. The answer is stored in each of them.
    Codes {
        pid: u32,
        layout: Layout,
        codes: Vec<WantedCode>,
    },
}

/// The answer to a request.
pub enum Came {
    /// A file was inspected. The interpreter is None if the file is not one.
    File {
        module: ModuleId,
        interpreter: Option<Arc<Interpreter>>,
        /// Set if it has asyncio's part in C; inside the positions of tasks, if it contains them.
        asyncio: Option<Option<TaskLayout>>,
    },
    /// A mapping was inspected.
    Trampolines {
        pid: u32,
        start: u64,
        kind: Trampoline,
    },
    /// A process was inspected.
    Look {
        pid: u32,
        ticket: Ticket,
        seen: Result<Box<Seen>, Lack>,
        /// Whether the process has memory: it has not ended.
        is_there: bool,
    },
}

/// The result of inspecting a process.
pub struct Seen {
    pub layout: Layout,
    /// The address of its global lock.
    pub gil: Option<u64>,
    /// Where each thread has the address of its own state, relative to its `pthread_t`.
    pub own_state: Option<i64>,
    /// Whether it is the lock of all its threads: there is one interpreter.
    pub has_one_gil: bool,
    /// The position of the frames of each thread.
    pub threads: HashMap<u32, ThreadState>,
    /// Threads that have never run Python.
    pub foreign: HashSet<u32>,
    /// Threads that run something that one interpreter has called in another one: their frames in
    /// the last one are known.
    pub nested: HashSet<u32>,
    /// The address of the names in the module `threading`, for each interpreter.
    pub threading: Vec<u64>,
    /// The names that the program has given to its threads, except for the first.
    pub names: HashMap<u32, Arc<str>>,
    /// The dictionary of the running tasks, if that was requested and exists.
    pub running_tasks: Option<u64>,
}

/// Starts the thread; `None` if that is not possible.
pub fn start() -> Option<Aside<Wanted, Came>> {
    let way = crate::files::for_those_aside();
    let read = move |wanted| read(wanted, &way);
    Aside::start("python", "reading Python's structures", read).ok()
}

fn read(wanted: Wanted, way: &Files) -> Option<Came> {
    let until = Instant::now() + LONGEST;
    match wanted {
        Wanted::File { module, file, name } => {
            let file = File::from(file.try_clone().ok()?);
            // A file that cannot be understood is not an interpreter.
            let found = python_order::ask(file, &name, way).ok()?;
            Some(Came::File {
                module,
                interpreter: found.interpreter.map(Arc::new),
                asyncio: found.asyncio,
            })
        }
        Wanted::Look {
            look,
            layout,
            threading,
            wants_tasks,
            ticket,
        } => {
            let memory = || Within::new(blocks_of(look.pid, way), until);
            let seen = look_at(&look, layout, threading, wants_tasks, memory).map(Box::new);
            let is_there = seen.is_ok() || {
                let mappings = way.code_mappings(look.pid);
                mappings.is_ok_and(|lines| !lines.is_empty())
            };
            Some(Came::Look {
                pid: look.pid,
                ticket,
                seen,
                is_there,
            })
        }
        Wanted::Trampolines { pid, start } => {
            let code = memory_of(pid, way).read(start, LOOKED_AT).ok()?;
            let kind = Trampoline::recognize(&code)?;
            Some(Came::Trampolines { pid, start, kind })
        }
        Wanted::Codes { pid, layout, codes } => {
            let memory = || Within::new(blocks_of(pid, way), until);
            codes::read(&codes, &layout, &memory(), &memory());
            None
        }
    }
}

/// Memory of a process that can no longer be read after a deadline.
struct Within<M> {
    memory: M,
    until: Instant,
}

impl<M: Memory> Within<M> {
    fn new(memory: M, until: Instant) -> Self {
        Self { memory, until }
    }
}

impl<M: Memory> Memory for Within<M> {
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason> {
        if Instant::now() < self.until {
            self.memory.read(address, length)
        } else {
            Err(Reason::Remote)
        }
    }

    fn announce(&self, ranges: &[(u64, u32)]) {
        if Instant::now() < self.until {
            self.memory.announce(ranges);
        }
    }
}

/// Inspects a process; `memory` returns its memory as it is from then on.
fn look_at<M: Memory>(
    look: &Look,
    layout: Option<Layout>,
    threading: Vec<u64>,
    wants_tasks: bool,
    memory: impl Fn() -> M,
) -> Result<Seen, Lack> {
    let (again, memory) = (&memory(), &memory());
    let Look {
        pid,
        interpreter,
        runtime,
    } = look;
    let layout = match layout {
        Some(layout) => layout,
        None => Layout::of(interpreter.version, memory, *runtime)?,
    };
    let tids = tids::of_process(*pid);
    let threads = read_threads(memory, *runtime, &layout, tids.len() + ENDED_MAX)?;
    let mut found: HashMap<u32, ThreadState> = HashMap::new();
    let mut nested = HashSet::new();
    let mut by_pthread = HashMap::new();
    for thread in &threads {
        if let Some(tid) = tids::find(thread, &tids, memory) {
            by_pthread.insert(thread.pthread, tid);
            let state = ThreadState {
                address: thread.state,
                identity: thread.tid.unwrap_or(thread.pthread),
            };
            // A thread has a state in each interpreter that it has run, and the list begins with
            // the newest: that one runs what an earlier one has called.
            match found.get(&tid) {
                Some(newer) if runs(newer.address, &layout, memory) => {
                    if runs(thread.state, &layout, memory) {
                        nested.insert(tid);
                    }
                }
                _ => _ = found.insert(tid, state),
            }
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
    let is_foreign = |tid: &u32| !found.contains_key(tid);
    by_pthread.retain(|_, tid| tid != pid);
    let (threading, names) = if by_pthread.is_empty() {
        (threading, HashMap::new())
    } else {
        names(look, &layout, threading, &by_pthread, memory, again)
    };
    let has_tasks = wants_tasks && layout.tasks.is_some();
    let running_tasks = has_tasks.then(|| find_running_tasks(memory, *runtime, &layout));
    Ok(Seen {
        layout,
        // A dictionary that cannot be read is looked for again.
        running_tasks: running_tasks.and_then(Result::ok).flatten(),
        gil: find_gil(memory, *runtime, &layout).ok(),
        own_state: own_state::find(&threads, memory),
        has_one_gil: count_interpreters(memory, *runtime, &layout) == Ok(1),
        threading,
        names,
        nested,
        foreign: tids.into_values().filter(is_foreign).collect(),
        threads: found,
    })
}

/// Whether a thread state has frames.
fn runs(state: u64, layout: &Layout, memory: &impl Memory) -> bool {
    let word = |address: u64| {
        let bytes = memory.read(address, 8).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let innermost = || match (
        word(state.wrapping_add(layout.thread.frame.into()))?,
        layout.thread.c_frame,
    ) {
        (0, _) => Some(0),
        (c_frame, Some(at)) => word(c_frame.wrapping_add(at.into())),
        (frame, None) => Some(frame),
    };
    innermost().is_some_and(|frame| frame != 0)
}

/// Returns the names that a program has given to its threads, and their address. What cannot be
/// read is left out.
fn names(
    look: &Look,
    layout: &Layout,
    mut threading: Vec<u64>,
    tids: &HashMap<u64, u32>,
    memory: &impl Memory,
    again: &impl Memory,
) -> (Vec<u64>, HashMap<u32, Arc<str>>) {
    if threading.is_empty() {
        threading = find_threading(memory, look.runtime, layout).unwrap_or_default();
    }
    let mut names = HashMap::new();
    for module in &threading {
        let Ok(found) = read_thread_names(memory, again, *module, layout) else {
            // It is another module by now, or none.
            return (Vec::new(), names);
        };
        for (pthread, name) in found {
            if let Some(tid) = tids.get(&pthread)
                && !name.is_empty()
            {
                let name: String = name.chars().take(NAME_MAX).collect();
                names.insert(*tid, sanitize(name.as_bytes()).into());
            }
        }
    }
    (threading, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn memory_is_read_until_a_moment() {
        let reads = Cell::new(0);
        let memory = |_: u64, length: u32| {
            reads.set(reads.get() + 1);
            Ok(vec![0; length as usize])
        };
        let now = Instant::now();
        assert!(
            Within::new(&memory, now + Duration::from_secs(600))
                .read(1, 8)
                .is_ok()
        );
        assert_eq!(Within::new(&memory, now).read(1, 8), Err(Reason::Remote));
        assert_eq!(reads.get(), 1);
    }
}
