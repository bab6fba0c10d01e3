//! Whether a task is a target, decided before any work is done for it.

use super::maps::{
    CGROUP_ID, CGROUP_LEVEL, COMM_PIDS, COMM_VERDICTS, FILTER, TARGET_PIDS, TARGET_TIDS,
    TASK_TGID_OFFSET, count,
};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::{bpf_get_current_comm, generated as helpers};
use aya_ebpf::programs::BtfTracePointContext;
use core::ffi::c_void;
use probe_ebpf::settings::{counter, filter, verdict};

/// Whether the current task meets every condition that is set.
#[inline(always)]
pub fn is_target(tgid: u32, tid: u32) -> bool {
    let conditions = FILTER.load();
    if conditions & filter::PIDS != 0 && TARGET_PIDS.get_ptr(&tgid).is_none() {
        return false;
    }
    if conditions & filter::TIDS != 0 && TARGET_TIDS.get_ptr(&tid).is_none() {
        return false;
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

/// `sched_process_fork(parent, child)`: runs in the parent.
#[inline(always)]
pub fn follow_fork(ctx: &BtfTracePointContext) {
    if FILTER.load() & (filter::PIDS | filter::CHILDREN) != filter::PIDS | filter::CHILDREN {
        return;
    }
    let parent = (aya_ebpf::helpers::bpf_get_current_pid_tgid() >> 32) as u32;
    if TARGET_PIDS.get_ptr(&parent).is_none() {
        return;
    }
    // SAFETY: the second argument of this tracepoint is the child's task_struct.
    let child: *const u8 = unsafe { *(ctx.as_ptr() as *const u64).add(1) } as *const u8;
    let mut tgid = 0u32;
    // SAFETY: the helper checks the address; the offset is this kernel's own.
    let read = unsafe {
        helpers::bpf_probe_read_kernel(
            &raw mut tgid as *mut c_void,
            4,
            child.add(TASK_TGID_OFFSET.load() as usize) as *const c_void,
        )
    };
    // A new thread has its parent's tgid, which is in the map already.
    if read == 0 && tgid != parent {
        let present = verdict::WANTED;
        if TARGET_PIDS.insert(&tgid, &present, 0).is_err() {
            count(counter::TARGETS_FULL, 1);
        }
    }
}
