//! Programs that are *starting*: the dynamic linker maps one file after the other, and a list of
//! mappings would be outdated before it is in place. Their stacks are copied until that is done.

use crate::sideband::record::{Event, What};
use std::collections::HashMap;

/// A program has started when nothing was mapped for this long: two turns of reading events.
const QUIET_NS: u64 = 100_000_000;

/// Maximum time for which a program that keeps mapping files counts as starting.
const STARTING_MAX_NS: u64 = 1_000_000_000;

/// Processes whose programs are starting: their mappings still change.
#[derive(Debug, Default)]
pub struct Starting {
    by_pid: HashMap<u32, Start>,
}

#[derive(Debug)]
struct Start {
    exec_ns: u64,
    /// When it last mapped code of a file, or began.
    mapped_ns: u64,
}

impl Starting {
    /// Applies exec, new mappings and exit.
    pub fn apply(&mut self, event: &Event) {
        match &event.what {
            What::Comm {
                pid,
                tid,
                exec: true,
                ..
            } if pid == tid => {
                let start = Start {
                    exec_ns: event.time_ns,
                    mapped_ns: event.time_ns,
                };
                self.by_pid.insert(*pid, start);
            }
            // Code made at run time belongs to no file: it may be mapped at any time.
            What::Map(map) if map.identity.inode != 0 => {
                if let Some(start) = self.by_pid.get_mut(&map.pid) {
                    start.mapped_ns = event.time_ns;
                }
            }
            What::Exit { pid, tid } if pid == tid => {
                self.by_pid.remove(pid);
            }
            _ => {}
        }
    }

    /// Whether a process is still starting.
    pub fn contains(&self, pid: u32, now_ns: u64) -> bool {
        let start = self.by_pid.get(&pid);
        start.is_some_and(|start| start.is_under_way(now_ns))
    }

    /// Removes the processes that have started.
    pub fn sweep(&mut self, now_ns: u64) {
        self.by_pid.retain(|_, start| start.is_under_way(now_ns));
    }
}

impl Start {
    fn is_under_way(&self, now_ns: u64) -> bool {
        now_ns < self.exec_ns.saturating_add(STARTING_MAX_NS)
            && now_ns < self.mapped_ns.saturating_add(QUIET_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sideband::record::{Identity, Map};

    const MS: u64 = 1_000_000;

    fn map(pid: u32, inode: u64, time_ns: u64) -> Event {
        Event {
            time_ns,
            what: What::Map(Map {
                pid,
                start: 0x1000,
                length: 0x1000,
                file_offset: 0,
                path: b"/lib/libc.so.6".to_vec(),
                identity: Identity {
                    device: (8, 1),
                    inode,
                    generation: 0,
                },
            }),
        }
    }

    fn exec(pid: u32, time_ns: u64) -> Event {
        Event {
            time_ns,
            what: What::Comm {
                pid,
                tid: pid,
                comm: b"cc1".to_vec(),
                exec: true,
            },
        }
    }

    #[test]
    fn until_nothing_more_is_mapped() {
        let mut starting = Starting::default();
        starting.apply(&map(7, 1, 0));
        assert!(!starting.contains(7, 1), "it was there before us");
        starting.apply(&exec(7, 1_000 * MS));
        assert!(starting.contains(7, 1_099 * MS));
        starting.apply(&map(7, 1, 1_050 * MS));
        assert!(starting.contains(7, 1_149 * MS));
        assert!(!starting.contains(7, 1_150 * MS));
        // Code that is made at run time belongs to no file.
        starting.apply(&map(7, 0, 1_140 * MS));
        assert!(!starting.contains(7, 1_150 * MS));
        assert!(!starting.contains(8, 1_001 * MS));
    }

    #[test]
    fn one_that_never_ends_to_map_is_not_waited_for() {
        let mut starting = Starting::default();
        starting.apply(&exec(7, 0));
        for ms in 0..2_000 {
            starting.apply(&map(7, 1, ms * MS));
            assert_eq!(starting.contains(7, ms * MS), ms < 1_000);
        }
        starting.sweep(2_000 * MS);
        assert!(starting.by_pid.is_empty());
    }
}
