//! Inspects a process: where its threads have their frames, what they are called, and what else is
//! needed to walk their frames.
//!
//! A process without rights does that, and sends the result to the one that asked. The memory may
//! have taken over that process, so nothing in the result is trusted: it is about threads of the
//! question only, and its texts are sanitized.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::asyncio::find_running_tasks;
use super::interpreter::Version;
use super::layout::Layout;
use super::memory::{Lack, Memory};
use super::own_state;
use super::thread_names::{find_threading, read_thread_names};
use super::threads::{INTERPRETERS_MAX, count_interpreters, find_gil, read_threads};
use crate::sanitize;
use crate::wire::{Taken, put_bytes, put_some_u64, put_u32, put_u64, put_u64s};

/// Maximum number of threads that have ended, but are still in the interpreter's list.
const ENDED_MAX: usize = 64;

/// Maximum length of a thread's name: the kernel keeps 15 characters.
const NAME_MAX: usize = 64;

/// What is known about a process before it is inspected, and what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The process.
    pub pid: u32,
    /// The version of its interpreter.
    pub version: Version,
    /// The address of its `_PyRuntime`.
    pub runtime: u64,
    /// Its layout, if it is known.
    pub layout: Option<Layout>,
    /// The addresses of the names in the module `threading`, if they are known.
    pub threading: Vec<u64>,
    /// Whether the position of its tasks is unknown, and may be found.
    pub wants_tasks: bool,
    /// Its threads: from the tid that the process itself sees to the kernel's.
    pub tids: BTreeMap<u64, u32>,
}

/// The position of the frames of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPlace {
    /// The address of its `PyThreadState`.
    pub state: u64,
    /// Its tid as the process sees it, or its `pthread_t` before 3.11: what tells its state from
    /// that of another thread.
    pub identity: u64,
}

/// The result of inspecting a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its layout.
    pub layout: Layout,
    /// The address of its global lock.
    pub gil: Option<u64>,
    /// Where each thread has the address of its own state, relative to its `pthread_t`.
    pub own_state: Option<i64>,
    /// Whether it is the lock of all its threads: there is one interpreter.
    pub has_one_gil: bool,
    /// The position of the frames of each thread; a thread that is not there has never run Python.
    pub threads: HashMap<u32, ThreadPlace>,
    /// Threads that run something that one interpreter has called in another one: their frames in
    /// the last one are known.
    pub nested: HashSet<u32>,
    /// The address of the names in the module `threading`, for each interpreter.
    pub threading: Vec<u64>,
    /// The names that the program has given to its threads, except for the first. Safe to print.
    pub names: HashMap<u32, Arc<str>>,
    /// The dictionary of the running tasks, if that was requested and exists.
    pub running_tasks: Option<u64>,
}

impl Look {
    /// Encodes it for another process.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.pid);
        out.extend([self.version.major, self.version.minor]);
        put_u64(out, self.runtime);
        out.push(self.layout.is_some().into());
        if let Some(layout) = &self.layout {
            layout.write(self.version, out);
        }
        put_u64s(out, self.threading.iter().copied());
        out.push(self.wants_tasks.into());
        put_u32(out, self.tids.len() as u32);
        for (own, tid) in &self.tids {
            put_u64(out, *own);
            put_u32(out, *tid);
        }
    }

    /// Decodes the result of [`Look::write`]; `None` if it is malformed.
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Look> {
        let (pid, version, runtime) = (bytes.u32()?, Version::take(bytes)?, bytes.u64()?);
        let layout = match bytes.u8()? {
            0 => None,
            _ => Some(Layout::take(version, bytes)?),
        };
        let (threading, wants_tasks) = (bytes.u64s()?, bytes.u8()? != 0);
        let count = bytes.u32()?;
        let tids = (0..count).map(|_| Some((bytes.u64()?, bytes.u32()?)));
        Some(Look {
            pid,
            version,
            runtime,
            layout,
            threading,
            wants_tasks,
            tids: tids.collect::<Option<_>>()?,
        })
    }
}

impl Seen {
    /// Inspects a process. `again` is the same memory, of which nothing has been read yet.
    pub fn read(look: &Look, memory: &impl Memory, again: &impl Memory) -> Result<Seen, Lack> {
        let Look { runtime, tids, .. } = look;
        let layout = match look.layout {
            Some(layout) => layout,
            None => Layout::of(look.version, memory, *runtime)?,
        };
        let threads = read_threads(memory, *runtime, &layout, tids.len() + ENDED_MAX)?;
        let mut found: HashMap<u32, ThreadPlace> = HashMap::new();
        let mut nested = HashSet::new();
        let mut by_pthread = HashMap::new();
        for thread in &threads {
            if let Some(tid) = thread.find_tid(tids, memory) {
                by_pthread.insert(thread.pthread, tid);
                let place = ThreadPlace {
                    state: thread.state,
                    identity: thread.tid.unwrap_or(thread.pthread),
                };
                // A thread has a state in each interpreter that it has run, and the list begins
                // with the newest: that one runs what an earlier one has called.
                match found.get(&tid) {
                    Some(newer) if runs(newer.state, &layout, memory) => {
                        if runs(thread.state, &layout, memory) {
                            nested.insert(tid);
                        }
                    }
                    _ => _ = found.insert(tid, place),
                }
            }
        }
        // A child that was forked by another thread's code still has its parent's numbers.
        if let ([thread], 1, true) = (&threads[..], tids.len(), found.is_empty()) {
            let place = ThreadPlace {
                state: thread.state,
                identity: thread.tid.unwrap_or(thread.pthread),
            };
            found.extend(tids.values().map(|tid| (*tid, place)));
        }
        if found.is_empty() {
            return Err(Lack::Implausible("threads of Python"));
        }
        by_pthread.retain(|_, tid| *tid != look.pid);
        let (threading, names) = if by_pthread.is_empty() {
            (look.threading.clone(), HashMap::new())
        } else {
            names(look, &layout, &by_pthread, memory, again)
        };
        let has_tasks = look.wants_tasks && layout.tasks.is_some();
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
            threads: found,
        })
    }

    /// Encodes the answer to a question for another process.
    pub(crate) fn write(&self, look: &Look, out: &mut Vec<u8>) {
        if look.layout.is_none() {
            self.layout.write(look.version, out);
        }
        put_some_u64(out, self.gil);
        put_some_u64(out, self.own_state.map(i64::cast_unsigned));
        out.push(self.has_one_gil.into());
        put_u32(out, self.threads.len() as u32);
        for (tid, place) in &self.threads {
            put_u32(out, *tid);
            put_u64(out, place.state);
            put_u64(out, place.identity);
        }
        put_u32(out, self.nested.len() as u32);
        self.nested.iter().for_each(|tid| put_u32(out, *tid));
        put_u64s(out, self.threading.iter().copied());
        put_u32(out, self.names.len() as u32);
        for (tid, name) in &self.names {
            put_u32(out, *tid);
            put_bytes(out, name.as_bytes());
        }
        put_some_u64(out, self.running_tasks);
    }

    /// Decodes the answer to a question; `None` if it is malformed, or about threads that are not in
    /// the question. A layout that was in the question stays as it is.
    pub(crate) fn take(look: &Look, bytes: &mut Taken<'_>) -> Option<Seen> {
        let layout = match look.layout {
            Some(layout) => layout,
            None => Layout::take(look.version, bytes)?,
        };
        let tids: HashSet<u32> = look.tids.values().copied().collect();
        let one_of_them = |tid: u32| tids.contains(&tid).then_some(tid);
        let (gil, own_state, has_one_gil) =
            (bytes.some_u64()?, bytes.some_u64()?, bytes.u8()? != 0);
        let count = bytes.u32()?;
        let mut thread = || {
            let tid = one_of_them(bytes.u32()?)?;
            let (state, identity) = (bytes.u64()?, bytes.u64()?);
            Some((tid, ThreadPlace { state, identity }))
        };
        let threads = (0..count).map(|_| thread()).collect::<Option<_>>()?;
        let count = bytes.u32()?;
        let nested = (0..count).map(|_| one_of_them(bytes.u32()?));
        let nested = nested.collect::<Option<_>>()?;
        let threading = bytes.u64s().filter(|it| it.len() <= INTERPRETERS_MAX)?;
        let count = bytes.u32()?;
        let mut name = || {
            let tid = one_of_them(bytes.u32()?)?;
            Some((tid, short(&sanitize(bytes.bytes()?)).into()))
        };
        let names = (0..count).map(|_| name()).collect::<Option<_>>()?;
        Some(Seen {
            layout,
            gil,
            own_state: own_state.map(u64::cast_signed),
            has_one_gil,
            threads,
            nested,
            threading,
            names,
            running_tasks: bytes.some_u64()?,
        })
    }
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
    tids: &HashMap<u64, u32>,
    memory: &impl Memory,
    again: &impl Memory,
) -> (Vec<u64>, HashMap<u32, Arc<str>>) {
    let mut threading = look.threading.clone();
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
                names.insert(*tid, sanitize(short(&name).as_bytes()).into());
            }
        }
    }
    (threading, names)
}

/// The first characters of a name.
fn short(name: &str) -> &str {
    let end = name.char_indices().nth(NAME_MAX).map(|(at, _)| at);
    &name[..end.unwrap_or(name.len())]
}
