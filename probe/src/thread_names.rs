//! The names of threads, for a source whose samples do not contain them.

use crate::sideband::record::{Event, What};
use probe_ebpf::record::COMM_LEN;
use std::collections::HashMap;
use std::fs;

/// Maximum number of remembered threads; with more, all are read again.
const THREADS_MAX: usize = 65_536;

type Comm = [u8; COMM_LEN];

/// The current name of each thread.
#[derive(Debug, Default)]
pub struct ThreadNames {
    by_tid: HashMap<u32, Comm>,
}

impl ThreadNames {
    /// Applies the renaming or end of a thread.
    pub fn apply(&mut self, event: &Event) {
        match &event.what {
            What::Comm { tid, comm, .. } => self.set(*tid, comm_of(comm)),
            What::Exit { tid, .. } => _ = self.by_tid.remove(tid),
            What::Map(_) | What::Fork { .. } | What::Lost(_) => {}
        }
    }

    /// Returns the name of a thread. A new one that has already ended gets the name of its process.
    pub fn of(&mut self, tgid: u32, tid: u32, process: Option<&str>) -> Comm {
        if let Some(comm) = self.by_tid.get(&tid) {
            return *comm;
        }
        let comm = match fs::read(format!("/proc/{tgid}/task/{tid}/comm")) {
            Ok(name) => comm_of(name.strip_suffix(b"\n").unwrap_or(&name)),
            Err(_) => comm_of(process.unwrap_or_default().as_bytes()),
        };
        self.set(tid, comm);
        comm
    }

    fn set(&mut self, tid: u32, comm: Comm) {
        if self.by_tid.len() >= THREADS_MAX {
            self.by_tid.clear();
        }
        self.by_tid.insert(tid, comm);
    }
}

/// Converts a name to the kernel's form: truncated, with a zero at its end.
fn comm_of(name: &[u8]) -> Comm {
    let mut comm = [0; COMM_LEN];
    let length = name.len().min(COMM_LEN - 1);
    comm[..length].copy_from_slice(&name[..length]);
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(tid: u32, comm: &[u8]) -> Event {
        let what = What::Comm {
            pid: 1,
            tid,
            comm: comm.to_vec(),
            exec: false,
        };
        Event { time_ns: 0, what }
    }

    #[test]
    fn a_thread_is_called_as_it_was_last_renamed() {
        let mut names = ThreadNames::default();
        names.apply(&renamed(7, b"first"));
        names.apply(&renamed(7, b"a name that is much too long"));
        assert_eq!(&names.of(1, 7, None), b"a name that is \0");
    }

    #[test]
    fn a_living_thread_is_asked_and_a_dead_one_is_called_like_its_process() {
        let mut names = ThreadNames::default();
        let own = std::process::id();
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        let name = names.of(own, own, None);
        assert_eq!(crate::decode::comm_bytes(&name), comm.trim_end().as_bytes());
        let dead = names.of(own, u32::MAX, Some("gone"));
        assert_eq!(crate::decode::comm_bytes(&dead), b"gone");
    }
}
