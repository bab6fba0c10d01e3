//! Changes of processes that cannot wait until user space hears of them: a child must be
//! a target, and have its parent's mappings, before it runs; a new program must not be
//! walked by the old one's tables.

use super::maps::{FILTER, PROCESSES, TARGET_PIDS, TASK_TGID_OFFSET, count};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use core::ffi::c_void;
use probe_ebpf::settings::{counter, filter, verdict};

/// Runs when a task was created.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn follow_fork(ctx: RawTracePointContext) -> i32 {
    give_child_its_parents(&ctx);
    0
}

/// Runs when a task has become another program.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn follow_exec(_ctx: RawTracePointContext) -> i32 {
    forget_the_program();
    0
}

/// Handles `sched_process_fork(parent, child)`, which runs in the parent.
#[inline(always)]
fn give_child_its_parents(ctx: &RawTracePointContext) {
    let parent = (bpf_get_current_pid_tgid() >> 32) as u32;
    let child: u64 = ctx.arg(1);
    let Some(child) = tgid_of(child) else {
        return;
    };
    // A new thread has its parent's tgid.
    if child == parent {
        return;
    }
    if let Some(list) = PROCESSES.get_ptr(&parent) {
        // SAFETY: a value of a live map, read as one word. The list is not used
        // for another process before user space has heard of this fork.
        let list = unsafe { *list };
        // A full map is counted where lists are published.
        let _ = PROCESSES.insert(&child, &list, 0);
    }
    let follow = filter::PIDS | filter::CHILDREN;
    if FILTER.load() & follow == follow && TARGET_PIDS.get_ptr(&parent).is_some() {
        let present = verdict::WANTED;
        if TARGET_PIDS.insert(&child, &present, 0).is_err() {
            count(counter::TARGETS_FULL, 1);
        }
    }
}

/// Removes the mappings of the current task, which has become another program.
#[inline(always)]
fn forget_the_program() {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    // Most processes have no list there.
    let _ = PROCESSES.remove(&tgid);
}

/// Returns `tgid` of a `task_struct`. Returns None if it cannot be read.
#[inline(always)]
fn tgid_of(task: u64) -> Option<u32> {
    let mut tgid = 0u32;
    let address = task.wrapping_add(TASK_TGID_OFFSET.load() as u64);
    // SAFETY: the helper checks the address; the offset is this kernel's own.
    let read = unsafe {
        helpers::bpf_probe_read_kernel(&raw mut tgid as *mut c_void, 4, address as *const c_void)
    };
    if read == 0 && tgid != 0 {
        Some(tgid)
    } else {
        None
    }
}
