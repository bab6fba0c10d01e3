//! The current targets: the user space side of the filter that runs in BPF.
//!
//! BPF decides at each tick by looking into maps; this module fills the maps, and updates them as
//! processes start, are renamed and end.

mod users;

use crate::decode::{RawSample, comm_bytes};
use crate::error::Error;
use crate::family::descendants_of;
use crate::sideband::record::{Event, What};
use crate::target::Target;
use aya::maps::{HashMap as BpfHashMap, MapData};
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::settings::verdict;
use regex::bytes::Regex;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use users::UserFilter;

/// Maximum number of names whose verdict is remembered here; with more, all are evaluated again.
const COMMS_MAX: usize = probe_ebpf::limits::COMMS_MAX;

type Set = BpfHashMap<MapData, u32, u8>;

/// The maps that the filter in BPF uses.
#[derive(Debug)]
pub struct FilterMaps {
    /// Processes to sample.
    pub pids: Set,
    /// Threads to sample.
    pub tids: Set,
    /// Users whose processes to sample.
    pub uids: Set,
    /// Processes whose own name fits `--comm`, whatever their threads are called.
    pub comm_pids: Set,
    /// Names that were compared with `--comm`, each with a [`verdict`].
    pub comm_verdicts: BpfHashMap<MapData, [u8; COMM_LEN], u8>,
}

/// The current targets.
#[derive(Debug)]
pub struct Targets {
    /// The maps of the filter; `None` without BPF: then each sample is checked here.
    maps: Option<FilterMaps>,
    by_pid: bool,
    by_tid: bool,
    pids: HashSet<u32>,
    tids: HashSet<u32>,
    follow_children: bool,
    comm: Option<CommFilter>,
    /// The users of processes; `None` if BPF checks the user at each tick.
    users: Option<UserFilter>,
    /// Targets that did not exist at the last check.
    missing: HashSet<u32>,
}

#[derive(Debug)]
struct CommFilter {
    pattern: Regex,
    verdicts: HashMap<[u8; COMM_LEN], bool>,
    pids: HashSet<u32>,
}

impl Targets {
    /// Makes targets that are filtered in BPF, so that ticks of others are dropped there.
    pub fn filtered_in_bpf(target: &Target, mut maps: FilterMaps) -> Result<Self, Error> {
        let full = |name| move |source| Error::Map { name, source };
        for pid in &target.pids {
            maps.pids
                .insert(pid, verdict::WANTED, 0)
                .map_err(full("TARGET_PIDS"))?;
        }
        for tid in &target.tids {
            maps.tids
                .insert(tid, verdict::WANTED, 0)
                .map_err(full("TARGET_TIDS"))?;
        }
        for uid in &target.uids {
            maps.uids
                .insert(uid, verdict::WANTED, 0)
                .map_err(full("TARGET_UIDS"))?;
        }
        Ok(Self {
            maps: Some(maps),
            users: None,
            ..Self::filtered_here(target)
        })
    }

    /// Makes targets that are only filtered by [`wants`](Self::wants).
    pub fn filtered_here(target: &Target) -> Self {
        Self {
            maps: None,
            by_pid: !target.pids.is_empty(),
            by_tid: !target.tids.is_empty(),
            pids: target.pids.iter().copied().collect(),
            tids: target.tids.iter().copied().collect(),
            follow_children: target.children,
            comm: target.comm.clone().map(|pattern| CommFilter {
                pattern,
                verdicts: HashMap::new(),
                pids: HashSet::new(),
            }),
            users: UserFilter::new(&target.uids),
            missing: HashSet::new(),
        }
    }

    /// Returns the targets `asked`, with the named processes replaced by those that still live, and
    /// their children.
    pub fn living(&self, asked: &Target) -> Target {
        let mut living = asked.clone();
        if self.by_pid {
            living.pids = self.pids.iter().copied().collect();
            living.children = false;
        }
        living
    }

    /// Returns the number of named targets, and of their children, that are left. `None` if none
    /// were named.
    pub fn alive(&self) -> Option<usize> {
        (self.by_pid || self.by_tid).then_some(self.pids.len() + self.tids.len())
    }

    /// Forgets targets whose end was not reported, because it came before the side band was open,
    /// or the record was lost. Their last samples may still be queued, so it takes two checks. Has
    /// to be called about once a second.
    pub fn remove_missing(&mut self) {
        let is_missing = |id: &&u32| !Path::new(&format!("/proc/{id}")).exists();
        let missing: HashSet<u32> = self
            .pids
            .iter()
            .chain(&self.tids)
            .filter(is_missing)
            .copied()
            .collect();
        let gone: Vec<u32> = missing.intersection(&self.missing).copied().collect();
        for id in gone {
            self.forget_thread(id);
            self.forget_process(id);
        }
        self.missing = missing;
        if let Some(users) = &mut self.users {
            users.look_again();
        }
    }

    /// Adds the existing children of named processes, and theirs. Has to be called when new
    /// processes are already being reported, so that none is missed.
    pub fn adopt_children(&mut self) {
        if !self.by_pid || !self.follow_children {
            return;
        }
        let named: Vec<u32> = self.pids.iter().copied().collect();
        for pid in descendants_of(&named) {
            self.pids.insert(pid);
            if let Some(maps) = &mut self.maps {
                // If the map is full, BPF counts that.
                let _ = maps.pids.insert(pid, verdict::WANTED, 0);
            }
        }
    }

    /// Applies the start or end of a process. BPF has changed the map already if its programs could
    /// be attached.
    pub fn apply(&mut self, event: &Event) {
        if let Some(users) = &mut self.users {
            users.apply(event);
        }
        match event.what {
            What::Fork { pid, parent_pid }
                if self.follow_children && self.pids.contains(&parent_pid) =>
            {
                self.pids.insert(pid);
                if let Some(maps) = &mut self.maps {
                    // If the map is full, BPF counts that.
                    let _ = maps.pids.insert(pid, verdict::WANTED, 0);
                }
            }
            What::Exit { pid, tid } => {
                self.forget_thread(tid);
                if pid == tid {
                    self.forget_process(pid);
                }
            }
            What::Comm {
                pid, tid, ref comm, ..
            } if pid == tid => self.judge_process(pid, comm),
            _ => {}
        }
    }

    /// Whether processes were named by number, so that all others are irrelevant.
    pub fn are_named(&self) -> bool {
        self.by_pid
    }

    /// Whether samples of a process may be wanted, judging by its number and user.
    pub fn may_want(&mut self, pid: u32) -> bool {
        let is_named = !self.by_pid || self.pids.contains(&pid);
        is_named && self.users.as_mut().is_none_or(|users| users.wants(pid))
    }

    /// Whether a thread is wanted, judging by its numbers and its user; `tid` 0 for any thread of
    /// the process.
    pub fn wants_thread(&mut self, pid: u32, tid: u32) -> bool {
        let is_named = tid == 0 || !self.by_tid || self.tids.contains(&tid);
        is_named && self.may_want(pid)
    }

    /// Whether a sample that passed the kernel side is wanted. Also updates the filter in BPF, if
    /// this name is new to it.
    pub fn wants(&mut self, sample: &RawSample) -> bool {
        if self.maps.is_none()
            && (self.by_pid && !self.pids.contains(&sample.tgid)
                || self.by_tid && !self.tids.contains(&sample.tid))
        {
            return false;
        }
        if let Some(users) = &mut self.users
            && !users.wants(sample.tgid)
        {
            return false;
        }
        let Some(filter) = &mut self.comm else {
            return true;
        };
        if filter.pids.contains(&sample.tgid) {
            return true;
        }
        if let Some(wanted) = filter.verdicts.get(&sample.comm) {
            return *wanted;
        }
        let wanted = filter.pattern.is_match(comm_bytes(&sample.comm));
        if filter.verdicts.len() >= COMMS_MAX {
            filter.verdicts.clear();
        }
        filter.verdicts.insert(sample.comm, wanted);
        let value = if wanted {
            verdict::WANTED
        } else {
            verdict::UNWANTED
        };
        if let Some(maps) = &mut self.maps {
            // If the entry is lost there, the next sample comes here again.
            let _ = maps.comm_verdicts.insert(sample.comm, value, 0);
        }
        wanted
    }

    /// Evaluates the new name of a process: all of its threads are wanted, or not.
    pub fn judge_process(&mut self, pid: u32, comm: &[u8]) {
        let Some(filter) = &mut self.comm else {
            return;
        };
        if filter.pattern.is_match(comm) {
            if filter.pids.insert(pid)
                && let Some(maps) = &mut self.maps
            {
                let _ = maps.comm_pids.insert(pid, verdict::WANTED, 0);
            }
        } else if filter.pids.remove(&pid)
            && let Some(maps) = &mut self.maps
        {
            let _ = maps.comm_pids.remove(&pid);
        }
    }

    fn forget_thread(&mut self, tid: u32) {
        if self.tids.remove(&tid)
            && let Some(maps) = &mut self.maps
        {
            let _ = maps.tids.remove(&tid);
        }
    }

    fn forget_process(&mut self, pid: u32) {
        let known = self.pids.remove(&pid);
        let filter = self.comm.as_mut();
        let known_by_name = filter.is_some_and(|filter| filter.pids.remove(&pid));
        if let Some(maps) = &mut self.maps {
            if known {
                let _ = maps.pids.remove(&pid);
            }
            if known_by_name {
                let _ = maps.comm_pids.remove(&pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_that_were_there_before_are_targets() {
        // A shell, one that it started, and what that one started.
        let scratch = test_support::Scratch::new();
        let said = scratch.join("said");
        let output = std::fs::File::create(&said).expect("a file");
        let script = "sh -c 'sleep 1000 & echo $!; wait' & wait";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script]).stdout(output);
        let shell = test_support::Process::start(shell);
        let sleep = || {
            std::fs::read_to_string(&said)
                .ok()?
                .trim()
                .parse::<u32>()
                .ok()
        };
        test_support::wait_until("the pid of what sleeps", || sleep().is_some());
        let sleep = sleep().expect("its pid");
        let target = |children| Target {
            pids: vec![shell.pid()],
            children,
            ..Target::default()
        };
        let mut targets = Targets::filtered_here(&target(true));
        targets.adopt_children();
        assert_eq!(targets.alive(), Some(3));
        assert!(targets.pids.contains(&sleep));
        let mut alone = Targets::filtered_here(&target(false));
        alone.adopt_children();
        assert_eq!(alone.alive(), Some(1));
        let sleep = rustix::process::Pid::from_raw(sleep as i32).expect("a pid");
        _ = rustix::process::kill_process(sleep, rustix::process::Signal::KILL);
    }

    #[test]
    fn an_end_that_nobody_told_of_is_noticed_at_the_second_look() {
        let mut targets = Targets::filtered_here(&Target {
            pids: vec![std::process::id(), u32::MAX],
            ..Target::default()
        });
        targets.remove_missing();
        assert_eq!(targets.alive(), Some(2));
        targets.remove_missing();
        assert_eq!(targets.alive(), Some(1), "we live");
    }
}
