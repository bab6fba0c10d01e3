//! The sampled processes and their threads.
//!
//! A thread is stored as long as a kept sample belongs to it. A process is stored until it has
//! ended *and* has no thread left, so that two hundred short-lived processes a second do not
//! accumulate.

use crate::few;
use crate::pieces::Pieces;
use crate::shards::Shards;
use crate::{Family, ProcessDetails, ProcessId};
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

/// An index in the table of threads. Only samples refer to it; it is reused after the last of them
/// was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadSlot(pub(crate) u32);

/// How long a process without samples stays after its end: its last samples may still be in the
/// buffers when its end is reported.
const GRACE_SECONDS: u64 = 5;

/// Memory of a map entry and of a small string in addition to their contents.
const OVERHEAD_BYTES: usize = 48;

/// The part that is shared with views.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessTable {
    /// Processes by number.
    processes: Shards<ProcessId, Process>,
    threads: Pieces<Thread>,
}

impl ProcessTable {
    pub(crate) fn get(&self, id: ProcessId) -> Option<&Process> {
        self.processes.get(id)
    }

    pub(crate) fn thread(&self, slot: ThreadSlot) -> &Thread {
        &self.threads[slot.0 as usize]
    }

    /// All processes sorted by number, as the map has no order.
    pub(crate) fn by_number(&self) -> Vec<(ProcessId, &Process)> {
        let mut all: Vec<_> = self.processes.iter().collect();
        few::sort_by_key(&mut all, |(id, _)| *id);
        all
    }

    /// Returns the processes and threads with other names.
    pub(crate) fn renamed(
        &self,
        mut comm: impl FnMut(&Arc<str>) -> Arc<str>,
        mut details: impl FnMut(&ProcessDetails) -> ProcessDetails,
    ) -> Self {
        let renamed = self.by_number().into_iter().map(|(id, process)| {
            let process = Process {
                comm: comm(&process.comm),
                details: details(&process.details),
                ..process.clone()
            };
            (id, process)
        });
        let processes: Shards<ProcessId, Process> = renamed.collect();
        let threads = self.threads.iter().map(|thread| Thread {
            comm: comm(&thread.comm),
            ..thread.clone()
        });
        Self {
            threads: threads.collect(),
            processes,
        }
    }

    /// Length of a table indexed by [`ThreadSlot`].
    pub(crate) fn thread_slots(&self) -> usize {
        self.threads.len()
    }
}

impl Deref for Processes {
    type Target = ProcessTable;

    fn deref(&self) -> &ProcessTable {
        &self.table
    }
}

/// The part that only the store has: look-up tables, and how long each process and thread has to
/// stay.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    table: ProcessTable,
    /// The latest process with each pid on each machine.
    by_pid: HashMap<(Option<Arc<str>>, u32), ProcessId>,
    /// Ended processes by the second of their end.
    ended: VecDeque<(u64, ProcessId)>,
    /// Number of kept samples of each thread.
    samples: Vec<u32>,
    /// Threads that have a kept sample.
    by_tid: HashMap<(ProcessId, u32), ThreadSlot>,
    /// Slots without a kept sample, to be reused.
    free: Vec<ThreadSlot>,
}

/// One life of a process: its description, and what keeps it in the table.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) comm: Arc<str>,
    pub(crate) details: ProcessDetails,
    /// Whether its end was reported.
    pub(crate) exited: bool,
    /// Whether the process itself was reported, and not only seen in a sample.
    told: bool,
    /// Whether it is in the queue of those that ended lately.
    in_grace: bool,
    /// Number of threads that have a kept sample.
    threads: u32,
}

impl Thread {
    /// Whether both are the same thread with the same name. Names are compared by their address
    /// first, as they nearly always share one allocation.
    pub(crate) fn is(&self, other: &Thread) -> bool {
        self.process == other.process
            && self.tid == other.tid
            && (Arc::ptr_eq(&self.comm, &other.comm) || self.comm == other.comm)
    }
}

/// A thread that has, or had, a kept sample. Its name is the latest one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Thread {
    pub(crate) process: ProcessId,
    pub(crate) tid: u32,
    pub(crate) comm: Arc<str>,
}

impl Process {
    /// Whether it belongs to one of the families.
    pub(crate) fn is_of(&self, families: &[Family]) -> bool {
        Family::any_has(families, self.pid, &self.details)
    }

    /// Whether the descriptions of the two are equal.
    pub(crate) fn is_told_alike(&self, other: &Process) -> bool {
        (self.pid, &self.comm, self.exited, &self.details)
            == (other.pid, &other.comm, other.exited, &other.details)
    }

    /// A process that was only seen in a sample. It counts as ended, so that it is dropped with its
    /// samples.
    pub(crate) fn untold() -> Self {
        Self {
            pid: 0,
            comm: Arc::default(),
            details: ProcessDetails::default(),
            exited: true,
            told: false,
            in_grace: false,
            threads: 0,
        }
    }
}

impl Processes {
    /// Adds a process, or renames an existing one. `host` is its machine, which never changes.
    pub(crate) fn add(
        &mut self,
        id: ProcessId,
        host: Option<&Arc<str>>,
        pid: u32,
        comm: &str,
        second: u64,
    ) {
        if let Some(process) = self.processes.get(id).filter(|p| p.told) {
            if *process.comm != *comm {
                self.change(id, |process| process.comm = comm.into());
            }
            return;
        }
        // A machine reuses a pid only after the end of the process that had it, whether or not that
        // end was reported.
        if let Some(before) = self.by_pid.insert((host.cloned(), pid), id) {
            self.exit(before, second);
        }
        // A sample may have arrived before the process was reported.
        let processes = &mut self.table.processes;
        let process = processes.get_or_insert_with(id, Process::untold);
        process.pid = pid;
        process.comm = comm.into();
        process.details.host = host.cloned();
        process.told = true;
        process.exited = false;
    }

    /// Records that a process has ended; `second` is when. It stays for its grace period, and as
    /// long as a sample of it is kept.
    pub(crate) fn exit(&mut self, id: ProcessId, second: u64) {
        let Some(process) = self.processes.get(id) else {
            return;
        };
        if !process.in_grace {
            self.ended.push_back((second, id));
        }
        self.change(id, |process| {
            process.exited = true;
            process.in_grace = true;
        });
    }

    /// Sets what else is known about a process. Its machine does not change.
    pub(crate) fn set_details(&mut self, id: ProcessId, mut details: ProcessDetails) {
        let Some(process) = self.get(id) else {
            return;
        };
        details.host = process.details.host.clone();
        if process.details != details {
            self.change(id, |process| process.details = details);
        }
    }

    pub(crate) fn table(&self) -> &ProcessTable {
        &self.table
    }

    fn change(&mut self, id: ProcessId, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.table.processes.get_mut(id) {
            change(process);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn count_threads(&self) -> usize {
        self.by_tid.len()
    }

    /// Returns the thread of one more sample. Its command name is the latest one seen.
    pub(crate) fn add_sample(
        &mut self,
        process: ProcessId,
        tid: u32,
        comm: &str,
        second: u64,
    ) -> ThreadSlot {
        if let Some(slot) = self.by_tid.get(&(process, tid)) {
            let at = slot.0 as usize;
            self.samples[at] += 1;
            if *self.threads[at].comm != *comm {
                self.table.threads.write(at).comm = comm.into();
            }
            return *slot;
        }
        self.open_thread(process, tid, comm, second)
    }

    /// Counts a dropped sample of a thread. With the last one the thread is dropped, and with the
    /// last thread an ended process.
    pub(crate) fn drop_sample(&mut self, slot: ThreadSlot) {
        let samples = &mut self.samples[slot.0 as usize];
        *samples -= 1;
        if *samples > 0 {
            return;
        }
        let thread = &self.threads[slot.0 as usize];
        let (id, tid) = (thread.process, thread.tid);
        self.by_tid.remove(&(id, tid));
        self.free.push(slot);
        self.change(id, |process| process.threads -= 1);
        let Some(process) = self.processes.get(id) else {
            return;
        };
        // A process whose grace period is not over is dropped when it is.
        if process.threads == 0 && process.exited && !process.in_grace {
            self.remove(id);
        }
    }

    /// Drops the processes whose grace period is over and which have no samples.
    pub(crate) fn sweep(&mut self, second: u64) {
        while let Some((ended, id)) = self.ended.front().copied()
            && ended.saturating_add(GRACE_SECONDS) < second
        {
            self.ended.pop_front();
            // A process that was reported as started after all is no longer ended, and stays.
            self.change(id, |process| process.in_grace = false);
            let Some(process) = self.processes.get(id) else {
                continue;
            };
            if process.threads == 0 && process.exited {
                self.remove(id);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.processes.len() * (size_of::<(ProcessId, Process)>() + 2 * OVERHEAD_BYTES)
            + self.ended.capacity() * size_of::<(u64, ProcessId)>()
            + self.threads.memory_bytes()
            + self.samples.capacity() * size_of::<u32>()
            + self.by_tid.len() * 2 * OVERHEAD_BYTES
    }

    /// Returns a slot for a thread that has no kept sample yet.
    fn open_thread(&mut self, id: ProcessId, tid: u32, comm: &str, second: u64) -> ThreadSlot {
        let processes = &mut self.table.processes;
        let process = processes.get_or_insert_with(id, || {
            // A late sample of a process that was never reported, or was dropped. The number of its
            // thread is the best guess for its pid.
            self.ended.push_back((second, id));
            Process {
                pid: tid,
                comm: comm.into(),
                in_grace: true,
                ..Process::untold()
            }
        });
        process.threads += 1;
        let thread = Thread {
            process: id,
            tid,
            // Most threads have the same name as their process.
            comm: if *process.comm == *comm {
                Arc::clone(&process.comm)
            } else {
                comm.into()
            },
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => ThreadSlot(self.threads.len() as u32),
        };
        let at = slot.0 as usize;
        if at < self.threads.len() {
            *self.table.threads.write(at) = thread;
            self.samples[at] = 1;
        } else {
            self.table.threads.push(thread);
            self.samples.push(1);
        }
        self.by_tid.insert((id, tid), slot);
        slot
    }

    /// Removes a process. Its pid may belong to another one by now.
    fn remove(&mut self, id: ProcessId) {
        let Some(process) = self.table.processes.remove(id) else {
            return;
        };
        let key = (process.details.host, process.pid);
        if self.by_pid.get(&key) == Some(&id) {
            self.by_pid.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: ProcessId = ProcessId(1);

    #[test]
    fn a_process_stays_until_it_ended_and_its_samples_left() {
        let mut all = Processes::default();
        all.add(SHELL, None, 100, "bash", 0);
        let slot = all.add_sample(SHELL, 100, "bash", 0);
        all.exit(SHELL, 1);
        all.sweep(100);
        assert!(all.get(SHELL).is_some_and(|p| p.exited));
        all.drop_sample(slot);
        assert_eq!((all.count(), all.count_threads()), (0, 0));
        assert_eq!(all.add_sample(ProcessId(2), 7, "ls", 0), slot, "used again");
    }

    #[test]
    fn a_process_without_samples_stays_for_its_grace() {
        let mut all = Processes::default();
        all.add(SHELL, None, 100, "bash", 0);
        all.exit(SHELL, 10);
        all.sweep(15);
        assert_eq!(all.count(), 1);
        all.sweep(16);
        assert_eq!(all.count(), 0);
    }

    #[test]
    fn a_pid_given_again_ends_its_former_holder() {
        let mut all = Processes::default();
        all.add(SHELL, None, 100, "bash", 0);
        all.add(ProcessId(2), None, 100, "ls", 0);
        assert!(all.get(SHELL).is_some_and(|p| p.exited));
        assert!(all.get(ProcessId(2)).is_some_and(|p| !p.exited));
    }

    #[test]
    fn a_pid_of_another_machine_is_another_process() {
        let mut all = Processes::default();
        let hosts: [Arc<str>; 2] = ["a".into(), "b".into()];
        all.add(SHELL, Some(&hosts[0]), 100, "bash", 0);
        all.add(ProcessId(2), Some(&hosts[1]), 100, "ls", 0);
        assert!(all.get(SHELL).is_some_and(|p| !p.exited));
        all.set_details(SHELL, ProcessDetails::default());
        assert_eq!(all.get(SHELL).unwrap().details.host, Some(hosts[0].clone()));
        all.add(ProcessId(3), Some(&hosts[0]), 100, "cat", 0);
        assert!(all.get(SHELL).is_some_and(|p| p.exited));
        assert!(all.get(ProcessId(2)).is_some_and(|p| !p.exited));
    }

    #[test]
    fn names_change() {
        let mut all = Processes::default();
        all.add(SHELL, None, 100, "bash", 0);
        all.add(SHELL, None, 100, "make", 0);
        let slot = all.add_sample(SHELL, 101, "worker", 0);
        all.add_sample(SHELL, 101, "worker-2", 0);
        assert_eq!(&*all.get(SHELL).unwrap().comm, "make");
        assert_eq!(&*all.thread(slot).comm, "worker-2");
    }

    #[test]
    fn a_sample_may_come_before_its_process_is_told_of() {
        let mut all = Processes::default();
        let slot = all.add_sample(SHELL, 7, "ls", 0);
        all.add(SHELL, None, 6, "bash", 0);
        assert!(all.get(SHELL).is_some_and(|p| !p.exited && p.pid == 6));
        all.drop_sample(slot);
        all.sweep(100);
        assert_eq!(all.count(), 1);
    }

    #[test]
    fn a_straggler_gets_a_process_that_leaves_with_it() {
        let mut all = Processes::default();
        let slot = all.add_sample(SHELL, 7, "ls", 0);
        assert!(all.get(SHELL).is_some_and(|p| p.exited && p.pid == 7));
        all.drop_sample(slot);
        all.sweep(6);
        assert_eq!(all.count(), 0);
    }
}
