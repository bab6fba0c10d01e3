//! The users of processes, read from /proc, if no BPF program can check them at each tick.

use crate::owner::real_uid;
use crate::sideband::record::{Event, What};
use std::collections::{HashMap, HashSet};

/// The wanted users, and the processes that were checked.
#[derive(Debug)]
pub struct UserFilter {
    uids: HashSet<u32>,
    known: HashMap<u32, Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    is_wanted: bool,
    /// Whether it did not exist at the last check. Its last samples may still come.
    is_missing: bool,
}

impl UserFilter {
    /// Makes a filter; `None` if all users are targets.
    pub fn new(uids: &[u32]) -> Option<Self> {
        (!uids.is_empty()).then(|| Self {
            uids: uids.iter().copied().collect(),
            known: HashMap::new(),
        })
    }

    /// Whether a process belongs to a wanted user; false if it ended before it was checked.
    pub fn wants(&mut self, pid: u32) -> bool {
        if let Some(known) = self.known.get(&pid) {
            return known.is_wanted;
        }
        let is_wanted = self.is_theirs(pid).unwrap_or(false);
        self.know(pid, is_wanted);
        is_wanted
    }

    /// Applies an event of a process whose user may have changed, or that has ended.
    pub fn apply(&mut self, event: &Event) {
        match event.what {
            // The child may end before it can be checked.
            What::Fork { pid, parent_pid } if pid != parent_pid => {
                if let Some(parent) = self.known.get(&parent_pid) {
                    self.know(pid, parent.is_wanted);
                }
            }
            What::Comm {
                pid, exec: true, ..
            } => {
                if let Some(is_wanted) = self.is_theirs(pid) {
                    self.know(pid, is_wanted);
                }
            }
            What::Exit { pid, tid } if pid == tid => drop(self.known.remove(&pid)),
            _ => {}
        }
    }

    /// Checks all again: a process may change its user at any time, which is not reported. Has to
    /// be called about once a second.
    pub fn look_again(&mut self) {
        let uids = &self.uids;
        self.known.retain(|pid, known| match real_uid(*pid) {
            Some(uid) => {
                *known = Known {
                    is_wanted: uids.contains(&uid),
                    is_missing: false,
                };
                true
            }
            None => !std::mem::replace(&mut known.is_missing, true),
        });
    }

    fn is_theirs(&self, pid: u32) -> Option<bool> {
        real_uid(pid).map(|uid| self.uids.contains(&uid))
    }

    fn know(&mut self, pid: u32, is_wanted: bool) {
        let known = Known {
            is_wanted,
            is_missing: false,
        };
        self.known.insert(pid, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> (u32, u32) {
        let uid = rustix::process::getuid().as_raw();
        (std::process::id(), uid)
    }

    fn event(what: What) -> Event {
        Event { time_ns: 0, what }
    }

    #[test]
    fn nobody_named_is_no_filter() {
        assert!(UserFilter::new(&[]).is_none());
    }

    #[test]
    fn a_process_is_its_users() {
        let (pid, uid) = own();
        let mut ours = UserFilter::new(&[uid]).unwrap();
        assert!(ours.wants(pid));
        assert!(!ours.wants(u32::MAX), "there is none");
        let mut others = UserFilter::new(&[uid + 1]).unwrap();
        assert!(!others.wants(pid));
    }

    #[test]
    fn a_child_that_is_gone_was_its_parents_user() {
        let (pid, uid) = own();
        let mut filter = UserFilter::new(&[uid]).unwrap();
        filter.wants(pid);
        let child = u32::MAX;
        filter.apply(&event(What::Fork {
            pid: child,
            parent_pid: pid,
        }));
        assert!(filter.wants(child));
        filter.look_again();
        assert!(filter.wants(child), "its samples may still come");
        filter.look_again();
        assert!(!filter.known.contains_key(&child), "forgotten");
        assert!(filter.wants(pid));
        filter.apply(&event(What::Exit { pid, tid: pid }));
        assert!(!filter.known.contains_key(&pid));
    }
}
