//! The event *wait*: a thread that had left its CPU joins one again.
//!
//! Every switch is accounted for, in `THREADS`; few waits record their stack. Which ones do is only
//! known at the end, when the length is known, and then the stack is read best in the
//! thread itself. But the tracepoint of the switch comes before the address spaces are
//! switched:
//!
//! ```text
//!  sched_switch: prev's memory    switch    interrupts on again: next's memory
//!  ── accounts, draws, nudges ─────────────► irq_work_entry: walks next's stack
//! ```
//!
//! Whether a wait is drawn depends on its length and on a random number, which is drawn when it
//! begins. So its length is known as soon as a thread ends it. If it is drawn by that, the stack
//! of that thread is recorded too: the current one, unless it was interrupted (`interrupt`).
//!
//! A wait that is drawn is noted for this CPU, and an interrupt is asked for, which the CPU can
//! take only when the switch is done. A write to a ring buffer, with the flag to wake its
//! reader, asks for one. No reader waits there.
//!
//! All of these programs run with interrupts off, as the clock's does, and share its room.

use super::clock::now_ns;
use super::filter::is_target;
use super::finish::walk_and_send;
use super::maps::{
    NUDGES_0, NUDGES_1, NUDGES_2, NUDGES_3, Nudges, PENDING_WAIT, PendingWait, SCRATCH, Scratch,
    WAIT_COUNTERS, WAIT_FLAGS_OFFSET, WAIT_IOWAIT_BIT, WAIT_IOWAIT_OFFSET, WAIT_ORDERS,
    WAIT_PID_OFFSET, WAIT_RUNQUEUE_OFFSET, WAIT_TGID_OFFSET, WAIT_THROTTLED_OFFSET,
    WAIT_THROTTLES_OFFSET, count_in,
};
use super::{interrupt, python, record, registers, stacks, threads};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_RB_FORCE_WAKEUP, pt_regs, task_struct};
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;
use core::ffi::c_void;
use probe_ebpf::record::event;
use probe_ebpf::waits::{
    DELAY_SLOTS, FUTEX, LOCK_WORDS, Leaving, TASK_DEAD, THREAD_WORDS, Thread,
    WAIT_KERNEL_FRAMES_MAX, WAIT_WORDS, counter, delay_slot, ended_by, has_waker, is_drawn,
    lock_owner, luck_of, ready_state, state, state_of, waited_ns,
};

/// Runs at `sched_switch(preempt, prev, next, prev_state)`, in `prev`.
#[btf_tracepoint(function = "sched_switch")]
pub fn wait_switch(ctx: BtfTracePointContext) -> i32 {
    let now_ns = now_ns();
    leave(
        ctx.arg(1),
        ctx.arg::<u64>(0) & 0xff != 0,
        ctx.arg(3),
        now_ns,
    );
    join(ctx.arg(2), now_ns);
    0
}

/// Runs at `sched_waking(task)`, in the thread that is current where `task` is woken.
#[btf_tracepoint(function = "sched_waking")]
pub fn wait_ends(ctx: BtfTracePointContext) -> i32 {
    let task: *const u8 = ctx.arg(0);
    if is_kernel_thread(task) {
        return 0;
    }
    let tid: u32 = field(task, WAIT_PID_OFFSET.load());
    let Some(thread) = threads::find(tid) else {
        return 0;
    };
    let waker = bpf_get_current_pid_tgid();
    let now_ns = now_ns();
    // SAFETY: a value of a live map; the kernel wakes a task once at a time.
    let known = unsafe { &mut *thread };
    known.waker_tid = waker as u32;
    known.waker_tgid = (waker >> 32) as u32;
    known.woken_ns = now_ns;
    known.ended_by = ended_by::UNKNOWN;
    if !has_waker(known.state) {
        return 0;
    }
    known.ended_by = interrupt::who_acts(waker as u32);
    // A thread may be woken while it is still leaving its CPU: that switch may have taken the time
    // after this program did. A wait that ended before it began has no length, and no stack.
    let waited_ns = now_ns.saturating_sub(known.since_ns);
    if known.ended_by == ended_by::THREAD && is_drawn(known.luck, waited_ns, period_ns()) {
        take_waker(ctx.as_ptr(), thread, tid, waited_ns);
    }
    0
}

/// Takes the stack of the current thread, which ends a wait of `waiter`. Not inlined: few wakes
/// come here.
#[inline(never)]
fn take_waker(ctx: *mut c_void, waiter: *const Thread, tid: u32, waited_ns: u64) -> u32 {
    // SAFETY: a value of a live map; the kernel wakes a task once at a time.
    let waiter = unsafe { &*waiter };
    let period_ns = period_ns();
    // User space wants no stacks yet.
    if period_ns == 0 {
        return 0;
    }
    let weight_ns = if waited_ns > period_ns {
        waited_ns
    } else {
        period_ns
    };
    let (Some(scratch), true) = (SCRATCH.get_ptr_mut(0), is_within_budget(waiter.woken_ns)) else {
        count_lost_wake(weight_ns);
        return 0;
    };
    record::begin(
        scratch,
        event::WAKE,
        waiter.woken_ns,
        bpf_get_current_pid_tgid(),
    );
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    unsafe {
        (*scratch).frames[0] = weight_ns;
        (*scratch).frames[1] = 0;
        (*scratch).frames[2] = waited_ns;
        (*scratch).frames[3] = state_word(waiter.state, ended_by::THREAD);
        (*scratch).frames[4] = (waiter.tgid as u64) << 32 | tid as u64;
        (*scratch).frames[5] = 0;
        (*scratch).position = WAIT_WORDS as u32;
        (*scratch).header.kernel_frames = WAIT_WORDS as u16;
    }
    stacks::kernel_behind::<WAIT_WORDS>(ctx, scratch);
    registers::at_entry(scratch);
    walk_and_send(scratch, |is_sent| {
        if !is_sent {
            count_lost_wake(weight_ns);
        }
    });
    count(counter::SPENT_NS, now_ns().wrapping_sub(waiter.woken_ns));
    0
}

/// Returns whether this CPU may record one more stack of a thread that ends a wait, this second.
#[inline(always)]
fn is_within_budget(now_ns: u64) -> bool {
    let (Some(pending), Some(orders)) = (PENDING_WAIT.get_ptr_mut(0), WAIT_ORDERS.get_ptr(0))
    else {
        return false;
    };
    // SAFETY: a per-CPU value of this CPU, and a value of a live map.
    unsafe {
        let second = now_ns >> 30;
        if (*pending).wakes_second != second {
            (*pending).wakes_second = second;
            (*pending).wakes = 0;
        }
        (*pending).wakes += 1;
        (*pending).wakes <= (*orders).stacks_per_second
    }
}

#[inline(always)]
fn count_lost_wake(weight_ns: u64) {
    count(counter::WAKES_LOST, 1);
    count(counter::WAKES_LOST_NS, weight_ns);
}

/// Returns how long a wait must be to record its stack for certain; 0 as long as none is wanted.
#[inline(always)]
fn period_ns() -> u64 {
    match WAIT_ORDERS.get_ptr(0) {
        // SAFETY: a value of a live map, read as one word.
        Some(orders) => unsafe { (*orders).period_ns },
        None => 0,
    }
}

/// Runs at `sched_wakeup_new(task)`, in the parent of `task`.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub fn wait_begins(ctx: BtfTracePointContext) -> i32 {
    let task: *const u8 = ctx.arg(0);
    if !is_kernel_thread(task) {
        let tid: u32 = field(task, WAIT_PID_OFFSET.load());
        let tgid: u32 = field(task, WAIT_TGID_OFFSET.load());
        // Control group, user and name are still its parent's.
        if is_target(tgid, tid) {
            meet(tid, tgid, state::QUEUE, now_ns());
        }
    }
    0
}

/// Runs in an interrupt that the CPU asked itself for: perhaps for a wait's stack.
#[btf_tracepoint(function = "irq_work_entry")]
pub fn wait_stack(_ctx: BtfTracePointContext) -> i32 {
    let Some(pending) = PENDING_WAIT.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: a per-CPU value of this CPU.
    let tid = unsafe { (*pending).tid };
    if tid != 0 {
        take(pending, tid);
    }
    0
}

/// Does the accounting for a thread that leaves its CPU, the `prev` of a switch.
#[inline(always)]
fn leave(task: *const u8, is_preempted: bool, task_state: u32, now_ns: u64) {
    let tid: u32 = field(task, WAIT_PID_OFFSET.load());
    if tid == 0 || is_kernel_thread(task) {
        return;
    }
    let tgid: u32 = field(task, WAIT_TGID_OFFSET.load());
    let (mut call, mut lock) = (-1, Lock::default());
    let state = if is_preempted || task_state == 0 {
        ready_state(is_throttled(task))
    } else {
        // SAFETY: a helper made for a task of a tracepoint; fields of what it returns.
        let cs = unsafe {
            let entry = helpers::bpf_task_pt_regs(task as *mut task_struct) as *const pt_regs;
            lock = Lock {
                at: (*entry).rdi,
                operation: (*entry).rsi,
                expected: (*entry).rdx,
            };
            call = (*entry).orig_rax as i64;
            (*entry).cs
        };
        let iowait: u8 = field(task, WAIT_IOWAIT_OFFSET.load());
        state_of(Leaving {
            task_state,
            is_in_iowait: iowait as u32 & WAIT_IOWAIT_BIT.load() != 0,
            call,
            is_compat: cs == 0x23,
        })
    };
    let Some(thread) = threads::find(tid) else {
        if task_state & TASK_DEAD == 0 && is_target(tgid, tid) {
            meet(tid, tgid, state, now_ns);
        }
        return;
    };
    // SAFETY: a value of a live map; a thread runs on one CPU at a time.
    let known = unsafe { &mut *thread };
    if known.state != state::RUN {
        join_unseen(known, now_ns);
    }
    add(known, state::RUN, now_ns.wrapping_sub(known.since_ns));
    known.since_ns = now_ns;
    known.state = state;
    known.luck = luck_of(now_ns, tid);
    if state == state::LOCK {
        known.owner_tid = 0;
        if call == FUTEX && python::is_global_lock(lock.at, tgid) {
            known.state = state::GIL;
            known.owner_tid = thread_of(python::lock_holder(tgid), tid, tgid);
        } else if call == FUTEX {
            known.owner_tid = owner_of(lock, tgid);
        }
    }
    let runs = known.times[state::RUN as usize];
    if runs & runs.wrapping_sub(1) == 0 {
        // At runs 1, 2, 4, 8 and so on: a thread gets its name soon, and most keep it.
        known.comm = bpf_get_current_comm().unwrap_or(known.comm);
    }
    if task_state & TASK_DEAD != 0 {
        end(thread, tid, now_ns);
    }
}

/// The arguments of a call of futex(2).
#[derive(Clone, Copy, Default)]
struct Lock {
    at: u64,
    operation: u64,
    expected: u64,
}

/// Returns which thread of the same process has the lock that the current thread waits for; 0 if
/// that is not known.
#[inline(always)]
fn owner_of(lock: Lock, tgid: u32) -> u32 {
    let mut words = [0u32; LOCK_WORDS];
    // SAFETY: the helper writes as much as there is room for, or zeros.
    let failed = unsafe {
        helpers::bpf_probe_read_user(
            &raw mut words as *mut c_void,
            size_of::<[u32; LOCK_WORDS]>() as u32,
            lock.at as *const c_void,
        )
    };
    if failed != 0 {
        return 0;
    }
    let owner = lock_owner(lock.operation, lock.expected, &words);
    thread_of(owner, 0, tgid)
}

/// Returns `owner`, which a lock names, if it is a thread of that process and not `other_than`;
/// else 0. A thread that waits for the global lock of Python may be the last that had it.
#[inline(always)]
fn thread_of(owner: u32, other_than: u32, tgid: u32) -> u32 {
    if owner == 0 || owner == other_than {
        return 0;
    }
    let Some(thread) = threads::find(owner) else {
        return 0;
    };
    // SAFETY: a value of a live map.
    if unsafe { (*thread).tgid } == tgid {
        owner
    } else {
        0
    }
}

/// Does the accounting for a thread that joins a CPU, the `next` of a switch.
#[inline(always)]
fn join(task: *const u8, now_ns: u64) {
    let tid: u32 = field(task, WAIT_PID_OFFSET.load());
    if tid == 0 || is_kernel_thread(task) {
        return;
    }
    let Some(thread) = threads::find(tid) else {
        return;
    };
    // SAFETY: a value of a live map; a thread runs on one CPU at a time.
    let known = unsafe { &mut *thread };
    let state = known.state;
    if state == state::RUN {
        return;
    }
    let since_ns = known.since_ns;
    let away_ns = now_ns.wrapping_sub(since_ns);
    let waited_ns = waited_ns(state, since_ns, known.woken_ns, now_ns);
    if state != state::QUEUE {
        add(known, state, waited_ns);
    }
    let queued_ns = away_ns.wrapping_sub(waited_ns);
    if state != state::QUOTA {
        add(known, state::QUEUE, queued_ns);
        add_delay(known, queued_ns);
    }
    known.since_ns = now_ns;
    known.woken_ns = 0;
    known.state = state::RUN;
    let period_ns = period_ns();
    // No stacks are wanted yet, or this wait is not drawn.
    if period_ns == 0 || !is_drawn(known.luck, away_ns, period_ns) {
        return;
    }
    let Some(pending) = PENDING_WAIT.get_ptr_mut(0) else {
        return;
    };
    let waker = if known.ended_by == ended_by::THREAD {
        (known.waker_tgid as u64) << 32 | known.waker_tid as u64
    } else {
        0
    };
    // SAFETY: a per-CPU value of this CPU.
    unsafe {
        if (*pending).tid != 0 {
            count(counter::MISSED, 1);
            count(counter::MISSED_NS, stands_for(pending));
        }
        (*pending).time_ns = now_ns;
        (*pending).words[2] = away_ns;
        (*pending).words[3] = state_word(state, known.ended_by);
        (*pending).words[4] = waker;
        (*pending).words[5] = (known.tgid as u64) << 32 | known.owner_tid as u64;
        (*pending).words[0] = scaled(waited_ns, away_ns, period_ns);
        (*pending).words[1] = scaled(away_ns.wrapping_sub(waited_ns), away_ns, period_ns);
    }
    nudge(pending, task as *mut task_struct, tid);
}

/// Does the accounting for a thread that joined a CPU by a switch that was not seen: some kernels
/// report no switch from threads that they hide. It waited until it was woken. When it got its CPU
/// is not known, and all of the time after the wake-up counts as run time.
#[inline(always)]
fn join_unseen(known: &mut Thread, now_ns: u64) {
    let waited_ns = waited_ns(known.state, known.since_ns, known.woken_ns, now_ns);
    if known.state != state::QUEUE {
        add(known, known.state, waited_ns);
    }
    known.since_ns = known.since_ns.wrapping_add(waited_ns);
    known.woken_ns = 0;
    let period_ns = period_ns();
    if period_ns != 0 && is_drawn(known.luck, waited_ns, period_ns) {
        count(counter::MISSED, 1);
        count(counter::MISSED_NS, scaled(waited_ns, waited_ns, period_ns));
    }
}

/// Returns a word with what was waited for, and what ended the wait.
#[inline(always)]
fn state_word(state: u32, ended_by: u32) -> u64 {
    (ended_by as u64) << 32 | state as u64
}

/// Returns how long a part of the time away stands for: longer if that was below the period.
#[inline(always)]
fn scaled(part_ns: u64, away_ns: u64, period_ns: u64) -> u64 {
    if away_ns >= period_ns || away_ns == 0 {
        part_ns
    } else {
        // Both are below 4 seconds: 32 bits.
        part_ns.wrapping_mul(period_ns) / away_ns
    }
}

#[inline(always)]
fn stands_for(pending: *const PendingWait) -> u64 {
    // SAFETY: a per-CPU value of this CPU.
    unsafe { (*pending).words[0].wrapping_add((*pending).words[1]) }
}

/// Notes the wait with the kernel's stack, which can be read already, and asks for the
/// interrupt.
#[inline(always)]
fn nudge(pending: *mut PendingWait, task: *mut task_struct, tid: u32) {
    // SAFETY: per-CPU values of this CPU.
    let is_too_many = unsafe {
        let second = (*pending).time_ns >> 30;
        if (*pending).second != second {
            (*pending).second = second;
            (*pending).taken = 0;
        }
        (*pending).taken += 1;
        match WAIT_ORDERS.get_ptr(0) {
            Some(orders) => (*pending).taken > (*orders).stacks_per_second,
            None => true,
        }
    };
    if is_too_many {
        count(counter::OVER_RATE, 1);
        count(counter::OVER_RATE_NS, stands_for(pending));
        // SAFETY: a per-CPU value of this CPU.
        unsafe { (*pending).tid = 0 };
        return;
    }
    let word = tid as u64;
    // SAFETY: the pointers are a task of the tracepoint, a value of a map with room for
    // as much, a map, and a local variable.
    unsafe {
        let bytes = helpers::bpf_get_task_stack(
            task,
            &raw mut (*pending).kernel as *mut c_void,
            (WAIT_KERNEL_FRAMES_MAX * 8) as u32,
            0,
        );
        (*pending).frames = if bytes > 0 { (bytes as u32) >> 3 } else { 0 };
        (*pending).tid = tid;
        let from = &raw const word as *mut c_void;
        let ring = this_cpus_ring() as *mut c_void;
        if helpers::bpf_ringbuf_output(ring, from, 8, BPF_RB_FORCE_WAKEUP as u64) != 0 {
            (*pending).tid = 0;
            count(counter::MISSED, 1);
            count(counter::MISSED_NS, stands_for(pending));
        }
    }
}

/// Returns the ring of this CPU. Two conditions are matched: a `match` on a number would become a
/// table of addresses, which cannot be loaded.
#[inline(always)]
fn this_cpus_ring() -> *const Nudges {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { helpers::bpf_get_smp_processor_id() };
    match (cpu & 2 != 0, cpu & 1 != 0) {
        (false, false) => &raw const NUDGES_0,
        (false, true) => &raw const NUDGES_1,
        (true, false) => &raw const NUDGES_2,
        (true, true) => &raw const NUDGES_3,
    }
}

/// Takes the stack of the thread that has just joined this CPU.
#[inline(always)]
fn take(pending: *mut PendingWait, tid: u32) {
    interrupt::check_in_interrupt();
    let id = bpf_get_current_pid_tgid();
    // SAFETY: a per-CPU value of this CPU.
    unsafe { (*pending).tid = 0 };
    if id as u32 != tid {
        count(counter::MISSED, 1);
        count(counter::MISSED_NS, stands_for(pending));
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: a per-CPU value of this CPU.
    let time_ns = unsafe { (*pending).time_ns };
    record::begin(scratch, event::WAIT, time_ns, id);
    begin_frames(scratch, pending);
    registers::at_entry(scratch);
    walk_and_send(scratch, |is_sent| {
        if is_sent {
            count(counter::TAKEN, 1);
        } else {
            count(counter::LOST, 1);
            count(counter::LOST_NS, stands_for(pending));
        }
    });
    // Counted from the switch on: on a virtual machine, the interrupt that was asked for costs more
    // than the walk.
    count(counter::SPENT_NS, now_ns().wrapping_sub(time_ns));
}

/// Writes what is known of the wait, and the frames of the kernel, into the record.
#[inline(never)]
fn begin_frames(scratch: *mut Scratch, pending: *const PendingWait) -> u32 {
    // SAFETY: values of per-CPU maps of this CPU; the length is bounded by the smaller.
    unsafe {
        let mut frames = (*pending).frames;
        if frames > WAIT_KERNEL_FRAMES_MAX as u32 {
            frames = WAIT_KERNEL_FRAMES_MAX as u32;
        }
        let words = frames + WAIT_WORDS as u32;
        // `kernel` lies right behind `words`.
        helpers::bpf_probe_read_kernel(
            &raw mut (*scratch).frames as *mut c_void,
            words * 8,
            &raw const (*pending).words as *const c_void,
        );
        (*scratch).position = words;
        (*scratch).header.kernel_frames = words as u16;
    }
    0
}

/// Starts to follow a thread.
#[inline(never)]
fn meet(tid: u32, tgid: u32, state: u32, now_ns: u64) -> u32 {
    let mut thread = Thread::UNKNOWN;
    thread.since_ns = now_ns;
    thread.known_ns = now_ns;
    thread.tgid = tgid;
    thread.state = state;
    // With 0 the first wait of every new thread would be drawn, and stand for a period.
    thread.luck = luck_of(now_ns, tid);
    thread.comm = bpf_get_current_comm().unwrap_or(thread.comm);
    if !threads::add(tid, &thread) {
        count(counter::NO_ROOM, 1);
    }
    0
}

/// Sends what a thread did in its life, and stops following it.
#[inline(always)]
fn end(thread: *const Thread, tid: u32, now_ns: u64) {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    record::begin(
        scratch,
        event::THREAD_END,
        now_ns,
        bpf_get_current_pid_tgid(),
    );
    // SAFETY: values of live maps; the record has room for as much.
    unsafe {
        helpers::bpf_probe_read_kernel(
            &raw mut (*scratch).frames as *mut c_void,
            (THREAD_WORDS * 8) as u32,
            thread as *const c_void,
        );
        (*scratch).position = THREAD_WORDS as u32;
        (*scratch).header.kernel_frames = THREAD_WORDS as u16;
    }
    if record::submit(scratch) != 0 {
        count(counter::ENDS_LOST, 1);
    }
    threads::remove(tid);
}

/// Adds to the sum of one state of a thread.
#[inline(always)]
fn add(thread: &mut Thread, state: u32, ns: u64) {
    let slot = state as usize & (state::SLOTS - 1);
    // SAFETY: the mask keeps the number inside of the structure, which has room behind its
    // last array; no state has such a number.
    unsafe {
        let sum = (&raw mut thread.ns as *mut u64).add(slot);
        *sum = (*sum).wrapping_add(ns);
        let times = (&raw mut thread.times as *mut u32).add(slot);
        *times = (*times).wrapping_add((ns != 0) as u32);
    }
}

/// Counts a time in the queue: how long the thread was ready before it ran.
#[inline(always)]
fn add_delay(thread: &mut Thread, queued_ns: u64) {
    let slot = delay_slot(queued_ns) & (DELAY_SLOTS - 1);
    // SAFETY: the mask keeps the number inside of the array, whose length is a power of two.
    unsafe {
        let count = (&raw mut thread.delays as *mut u32).add(slot);
        *count = (*count).wrapping_add(1);
    }
}

/// Returns whether this is a thread of the kernel, which has no program to account its time to.
#[inline(always)]
fn is_kernel_thread(task: *const u8) -> bool {
    /// `PF_KTHREAD` of include/linux/sched.h.
    const KERNEL_THREAD: u32 = 0x0020_0000;
    field::<u32>(task, WAIT_FLAGS_OFFSET.load()) & KERNEL_THREAD != 0
}

/// Returns whether the thread's control group, or one above it, has used up its quota of CPU time
/// (`cpu.max`). Since Linux 6.18 each thread says so, once it has left its CPU for that; before,
/// the run queue of the group on that CPU does, which is throttled before the switch.
#[inline(always)]
fn is_throttled(task: *const u8) -> bool {
    if WAIT_THROTTLED_OFFSET.load() != 0 {
        return field::<u8>(task, WAIT_THROTTLED_OFFSET.load()) != 0;
    }
    if WAIT_THROTTLES_OFFSET.load() == 0 {
        return false;
    }
    let queue: *const u8 = field(task, WAIT_RUNQUEUE_OFFSET.load());
    !queue.is_null() && field::<u32>(queue, WAIT_THROTTLES_OFFSET.load()) != 0
}

/// Returns a field of a `task_struct` from a tracepoint, or of a structure that this points to. The
/// verifier checks the read: to it, the offset is a constant.
#[inline(always)]
fn field<T: Copy>(task: *const u8, offset: u32) -> T {
    // SAFETY: the offset is this kernel's own for a field of that size.
    unsafe { *(task.add(offset as usize) as *const T) }
}

#[inline(always)]
fn count(slot: u32, amount: u64) {
    count_in(&WAIT_COUNTERS, slot, amount);
}
