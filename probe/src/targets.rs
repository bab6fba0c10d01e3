//! Who is a target now: the user side of the filter that runs in BPF.
//!
//! BPF decides at each tick by looking into maps; here the maps are filled,
//! and kept true as processes start, are renamed and end.

use crate::decode::{RawSample, comm_bytes};
use crate::error::Error;
use crate::sideband::record::{Event, What};
use crate::target::Target;
use aya::maps::{HashMap as BpfHashMap, MapData};
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::settings::verdict;
use regex::bytes::Regex;
use std::collections::{HashMap, HashSet};

/// Names whose verdict is remembered here; when there are more, all are asked
/// again.
const COMMS_MAX: usize = probe_ebpf::limits::COMMS_MAX;

type Set = BpfHashMap<MapData, u32, u8>;

/// The maps that the filter in BPF looks into.
#[derive(Debug)]
pub struct FilterMaps {
    pub pids: Set,
    pub tids: Set,
    pub comm_pids: Set,
    pub comm_verdicts: BpfHashMap<MapData, [u8; COMM_LEN], u8>,
}

/// The targets, as they are now.
#[derive(Debug)]
pub struct Targets {
    maps: FilterMaps,
    pids: HashSet<u32>,
    tids: HashSet<u32>,
    follow_children: bool,
    comm: Option<CommFilter>,
    /// Neither pids nor tids were named: there is always somebody left.
    open_ended: bool,
}

#[derive(Debug)]
struct CommFilter {
    pattern: Regex,
    verdicts: HashMap<[u8; COMM_LEN], bool>,
    pids: HashSet<u32>,
}

impl Targets {
    pub fn new(target: &Target, maps: FilterMaps) -> Result<Self, Error> {
        let mut targets = Self {
            maps,
            pids: target.pids.iter().copied().collect(),
            tids: target.tids.iter().copied().collect(),
            follow_children: target.children,
            comm: target.comm.clone().map(|pattern| CommFilter {
                pattern,
                verdicts: HashMap::new(),
                pids: HashSet::new(),
            }),
            open_ended: target.pids.is_empty() && target.tids.is_empty(),
        };
        let full = |name| move |source| Error::Map { name, source };
        for pid in &targets.pids {
            targets
                .maps
                .pids
                .insert(pid, verdict::WANTED, 0)
                .map_err(full("TARGET_PIDS"))?;
        }
        for tid in &targets.tids {
            targets
                .maps
                .tids
                .insert(tid, verdict::WANTED, 0)
                .map_err(full("TARGET_TIDS"))?;
        }
        Ok(targets)
    }

    /// How many of the named targets, and of their children, are left. Nothing
    /// where none was named.
    pub fn alive(&self) -> Option<usize> {
        (!self.open_ended).then_some(self.pids.len() + self.tids.len())
    }

    /// Takes note of processes that start and end. The map was changed by BPF
    /// already where that could be attached.
    pub fn apply(&mut self, event: &Event) {
        match event.what {
            What::Fork { pid, parent_pid }
                if self.follow_children && self.pids.contains(&parent_pid) =>
            {
                self.pids.insert(pid);
                // A full map is counted where BPF finds it full.
                let _ = self.maps.pids.insert(pid, verdict::WANTED, 0);
            }
            What::Exit { pid, tid } => {
                if self.tids.remove(&tid) {
                    let _ = self.maps.tids.remove(&tid);
                }
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

    /// Whether a sample is wanted that the filter in BPF let pass; and teaches
    /// the filter, if this name is new to it.
    pub fn wants(&mut self, sample: &RawSample) -> bool {
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
        // Not remembered there: the next sample comes here again.
        let _ = self.maps.comm_verdicts.insert(sample.comm, value, 0);
        wanted
    }

    /// A process has this name now: all of its threads are wanted, or not.
    pub fn judge_process(&mut self, pid: u32, comm: &[u8]) {
        let Some(filter) = &mut self.comm else {
            return;
        };
        if filter.pattern.is_match(comm) {
            if filter.pids.insert(pid) {
                let _ = self.maps.comm_pids.insert(pid, verdict::WANTED, 0);
            }
        } else if filter.pids.remove(&pid) {
            let _ = self.maps.comm_pids.remove(&pid);
        }
    }

    fn forget_process(&mut self, pid: u32) {
        if self.pids.remove(&pid) {
            let _ = self.maps.pids.remove(&pid);
        }
        if let Some(filter) = &mut self.comm
            && filter.pids.remove(&pid)
        {
            let _ = self.maps.comm_pids.remove(&pid);
        }
    }
}
