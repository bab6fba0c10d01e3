//! The event *happening*: something that is counted besides time has happened so often that a
//! sample is due. There are two kinds:
//!
//! - Events that the kernel or the CPU counts: page faults, switches, migrations, instructions.
//!   The kernel runs the program once in a period, which is a number of events that user space
//!   adapts to their rate. The context says how long the period was, and the counter what of it has
//!   happened (`probe_ebpf::happenings::CounterSeen`). Of these runs the program draws, at random,
//!   those that record their stack: a program that always does the same is never in step with that.
//!   The kernel does not run the program within that of the clock, or within
//!   itself (`bpf_prog_active` in kernel/events/core.c), so that all of these share the clock's
//!   room. User space reads the total number of events by other means.
//! - A tracepoint, whose program runs at each pass, wherever the kernel is, interrupts included.
//!   It counts all passes and draws, at random, those that record their stack
//!   (`probe_ebpf::happenings`). It uses the room of probes, as the clock may interrupt it.

use super::clock::now_ns;
use super::filter::is_target;
use super::finish::walk_and_send;
use super::maps::{
    CALL_SCRATCH, COUNTER_SEEN, HAPPENING_ORDERS, HAPPENING_PACE, SCRATCH, Scratch, count,
};
use super::walk::{mappings_of, walk};
use super::{python, record, registers, stacks, tick};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::bpf_perf_event_value;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::macros::{perf_event, raw_tracepoint};
use aya_ebpf::programs::{PerfEventContext, RawTracePointContext};
use core::ffi::c_void;
use probe_ebpf::atomic::swap;
use probe_ebpf::record::{HAPPENING_WORDS, event};
use probe_ebpf::settings::counter;
use probe_ebpf::status;

/// Runs when what the kernel counts has happened for one more period.
#[perf_event]
pub fn happening(ctx: PerfEventContext) -> u32 {
    take(&ctx);
    0
}

/// Runs when the kernel passes the tracepoint that is counted.
#[raw_tracepoint]
pub fn happening_point(ctx: RawTracePointContext) -> i32 {
    pass(ctx.as_ptr());
    0
}

#[inline(always)]
fn take(ctx: &PerfEventContext) {
    let start_ns = now_ns();
    let id = bpf_get_current_pid_tgid();
    let times = times_since_last(ctx);
    count(counter::HAPPENED, times);
    // After a change of the period the kernel may run the program twice for one event.
    if times == 0 || id == 0 || !is_target((id >> 32) as u32, id as u32) {
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    let (Some(orders), Some(pace)) = (HAPPENING_ORDERS.get_ptr(0), HAPPENING_PACE.get_ptr_mut(0))
    else {
        return;
    };
    // SAFETY: a per-CPU value, which no other program uses: the kernel does not run this program
    // within itself.
    let pace = unsafe { &mut *pace };
    // SAFETY: a helper without arguments.
    if !pace.is_drawn(unsafe { helpers::bpf_get_prandom_u32() }, times) {
        return;
    }
    // SAFETY: a value of a live map; a word cannot be torn.
    let times = pace.take(start_ns, unsafe { (*orders).stacks }, times);
    record::begin(scratch, event::HAPPENING, start_ns, id);
    begin_with(times, scratch);
    tick::interrupted::<HAPPENING_WORDS>(ctx, scratch);
    walk_and_send(scratch, |is_sent| count_sample(is_sent, times));
    count(
        counter::HAPPENINGS_SPENT_NS,
        now_ns().wrapping_sub(start_ns),
    );
}

/// Returns how many events this sample stands for.
#[inline(always)]
fn times_since_last(ctx: &PerfEventContext) -> u64 {
    // SAFETY: a field of a perf event program's context.
    let period = unsafe { (*ctx.ctx).sample_period };
    let Some(seen) = COUNTER_SEEN.get_ptr_mut(0) else {
        return period;
    };
    let mut value = bpf_perf_event_value {
        counter: 0,
        enabled: 0,
        running: 0,
    };
    let size = size_of::<bpf_perf_event_value>() as u32;
    // SAFETY: the context is that of this program, and the helper writes `size` bytes.
    let error = unsafe { helpers::bpf_perf_prog_read_value(ctx.ctx.cast(), &raw mut value, size) };
    if error != 0 {
        return period;
    }
    // SAFETY: a per-CPU value of a live map, which no other program uses: the kernel does not run
    // this program within itself.
    unsafe { &mut *seen }.stands_for(value.counter, period)
}

#[inline(always)]
fn pass(ctx: *mut c_void) {
    let (Some(orders), Some(pace)) = (HAPPENING_ORDERS.get_ptr(0), HAPPENING_PACE.get_ptr_mut(0))
    else {
        return;
    };
    // SAFETY: a value of a live map; a word cannot be torn.
    let stacks = unsafe { (*orders).stacks };
    // User space wants no stacks yet.
    if stacks == 0 {
        return;
    }
    let id = bpf_get_current_pid_tgid();
    count(counter::HAPPENED, 1);
    if id == 0 || !is_target((id >> 32) as u32, id as u32) {
        return;
    }
    // SAFETY: a per-CPU value, which no other program uses: the kernel does not run the program of
    // a tracepoint within itself.
    let pace = unsafe { &mut *pace };
    // SAFETY: a helper without arguments.
    if !pace.is_drawn(unsafe { helpers::bpf_get_prandom_u32() }, 1) {
        return;
    }
    let start_ns = now_ns();
    let period = pace.take(start_ns, stacks, 1);
    take_stack(ctx, start_ns, period);
    count(
        counter::HAPPENINGS_SPENT_NS,
        now_ns().wrapping_sub(start_ns),
    );
}

/// Puts the stack into a record: what the kernel was doing, and from where the program called
/// it. Not inlined, so that it has registers and a stack frame of its own.
#[inline(never)]
fn take_stack(ctx: *mut c_void, now_ns: u64, period: u64) -> u32 {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { helpers::bpf_get_smp_processor_id() };
    let Some(room) = CALL_SCRATCH.get_ptr_mut(cpu) else {
        return 0;
    };
    let id = bpf_get_current_pid_tgid();
    // SAFETY: values of live maps.
    unsafe {
        if swap(&raw mut (*room).busy, 1) != 0 {
            count_sample(false, period);
            return 0;
        }
        let scratch = &raw mut (*room).scratch;
        record::begin(scratch, event::HAPPENING, now_ns, id);
        begin_with(period, scratch);
        registers::at_entry(scratch);
        stacks::kernel_behind::<HAPPENING_WORDS>(ctx, scratch);
        if (*scratch).walk.status == status::CALLER {
            let list = mappings_of((id >> 32) as u32);
            walk(scratch, list, &raw mut (*room).cache);
            python::frames(scratch);
        }
        count_sample(record::submit(scratch) == 0, period);
        swap(&raw mut (*room).busy, 0);
    }
    0
}

/// Writes how often it happened in front of the frames.
#[inline(always)]
fn begin_with(times: u64, scratch: *mut Scratch) {
    // SAFETY: the pointer comes from a map and was checked there.
    unsafe {
        (*scratch).frames[0] = times;
        (*scratch).position = HAPPENING_WORDS as u32;
        (*scratch).header.kernel_frames = HAPPENING_WORDS as u16;
    }
}

#[inline(always)]
fn count_sample(is_sent: bool, period: u64) {
    if is_sent {
        count(counter::HAPPENINGS_TAKEN, 1);
    } else {
        count(counter::HAPPENINGS_LOST, 1);
        count(counter::HAPPENED_UNSEEN, period);
    }
}
