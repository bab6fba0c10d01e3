//! Decides whether a task is a target, before any work is done for it.

use super::maps::{
    CGROUP_ID, CGROUP_LEVEL, COMM_PIDS, COMM_VERDICTS, FILTER, TARGET_PIDS, TARGET_TIDS,
    TARGET_UIDS,
};
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_uid_gid, generated as helpers};
use probe_ebpf::settings::{filter, verdict};

/// Returns whether the current task meets every condition that is set.
#[inline(always)]
pub fn is_target(tgid: u32, tid: u32) -> bool {
    let conditions = FILTER.load();
    if conditions & filter::PIDS != 0 && TARGET_PIDS.get_ptr(&tgid).is_none() {
        return false;
    }
    if conditions & filter::TIDS != 0 && TARGET_TIDS.get_ptr(&tid).is_none() {
        return false;
    }
    if conditions & filter::UIDS != 0 {
        let uid = bpf_get_current_uid_gid() as u32;
        if TARGET_UIDS.get_ptr(&uid).is_none() {
            return false;
        }
    }
    if conditions & filter::CGROUP != 0 {
        // SAFETY: a helper with a number in and a number out.
        let id = unsafe { helpers::bpf_get_current_ancestor_cgroup_id(CGROUP_LEVEL.load() as i32) };
        if id != CGROUP_ID.load() {
            return false;
        }
    }
    if conditions & filter::COMM != 0 {
        return comm_fits(tgid);
    }
    true
}

#[inline(always)]
fn comm_fits(tgid: u32) -> bool {
    if COMM_PIDS.get_ptr(&tgid).is_some() {
        return true;
    }
    let Ok(comm) = bpf_get_current_comm() else {
        return false;
    };
    match COMM_VERDICTS.get_ptr(&comm) {
        // SAFETY: a value of a live map; a byte cannot be torn.
        Some(answer) => unsafe { *answer == verdict::WANTED },
        None => true,
    }
}
