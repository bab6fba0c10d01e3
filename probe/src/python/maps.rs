//! Passes the positions of Python's frames to what walks them: through BPF maps to the programs in
//! the kernel or, without BPF, to a [`Walker`].

use super::later::Walker;
use crate::decode::RawSample;
use crate::plain::Plain;
use crate::stack::StackCopy;
use aya::maps::{HashMap, MapData};
use probe_ebpf::limits::{PYTHON_PROCESSES_MAX, PYTHON_THREADS_MAX};
use probe_ebpf::python::{Layout, ThreadState, status};
use std::collections::HashMap as Here;
use symbolize::Files;

// SAFETY: structures of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Layout> {}
// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<ThreadState> {}

/// The maps, or what replaces them.
pub enum PythonMaps {
    /// The kernel side walks the frames, while their thread is interrupted.
    Bpf {
        processes: HashMap<MapData, u32, Plain<Layout>>,
        threads: HashMap<MapData, u32, Plain<ThreadState>>,
    },
    /// The frames are walked in this process, a moment later.
    Here {
        processes: Here<u32, Layout>,
        threads: Here<u32, ThreadState>,
        walker: Walker,
    },
}

impl PythonMaps {
    /// Makes the variant without BPF; memory is read through `way`.
    pub fn here(way: Files) -> Self {
        Self::Here {
            processes: Here::new(),
            threads: Here::new(),
            walker: Walker::new(way),
        }
    }

    /// Adds a process whose frames are to be walked. Returns false if there is no room for more.
    pub fn add_process(&mut self, pid: u32, layout: &Layout) -> bool {
        match self {
            Self::Bpf { processes, .. } => processes.insert(pid, Plain(*layout), 0).is_ok(),
            Self::Here { processes, .. } => {
                let has_room = processes.len() < PYTHON_PROCESSES_MAX;
                if has_room {
                    processes.insert(pid, *layout);
                }
                has_room
            }
        }
    }

    /// Removes a process, whose frames are not walked any more.
    pub fn remove_process(&mut self, pid: u32) {
        match self {
            // An error means that the kernel side has no entry for it.
            Self::Bpf { processes, .. } => _ = processes.remove(&pid),
            Self::Here { processes, .. } => _ = processes.remove(&pid),
        }
    }

    /// Sets the position of the frames of a thread. Returns false if there is no room for more.
    pub fn set_thread(&mut self, tid: u32, state: ThreadState) -> bool {
        match self {
            Self::Bpf { threads, .. } => threads.insert(tid, Plain(state), 0).is_ok(),
            Self::Here { threads, .. } => {
                let has_room = threads.len() < PYTHON_THREADS_MAX;
                if has_room {
                    threads.insert(tid, state);
                }
                has_room
            }
        }
    }

    /// Removes a thread that has ended.
    pub fn remove_thread(&mut self, tid: u32) {
        match self {
            Self::Bpf { threads, .. } => _ = threads.remove(&tid),
            Self::Here {
                threads, walker, ..
            } => {
                threads.remove(&tid);
                walker.forget(tid);
            }
        }
    }

    /// Walks the frames of the thread of a sample as they are now, if the kernel side does not. Has
    /// to be called as soon as the sample was read.
    pub fn walk(&mut self, raw: &mut RawSample, copy: &StackCopy) {
        let Self::Here {
            processes,
            threads,
            walker,
        } = self
        else {
            return;
        };
        let Some(layout) = processes.get(&raw.tgid) else {
            return;
        };
        match threads.get(&raw.tid) {
            Some(thread) => raw.python = walker.walk(raw.tgid, raw.tid, layout, thread, copy),
            None => raw.python.status = status::NO_THREAD,
        }
    }
}
