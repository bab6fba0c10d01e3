//! The event *happening*: something that is counted besides time has happened so often that a
//! sample is due. There are two kinds:
//!
//! - Events that the kernel or the CPU counts: page faults, switches, migrations, instructions.
//!   The kernel runs the program once in a period, which is a number of events, and adjusts
//!   it so that the program runs as often in a second as user space asked for. The context says how
//!   long the period was. The kernel does not run the program within that of the clock, or within
//!   itself (`bpf_prog_active` in kernel/events/core.c), so that all of these share the clock's
//!   room. User space reads the total number of events by other means.
//! - A tracepoint, whose program runs at each pass, wherever the kernel is, interrupts included.
//!   It counts all passes and draws, at random, those that record their stack
//!   (`probe_ebpf::happenings`). It uses the room of probes, as the clock may interrupt it.

use super::clock::now_ns;
use super::filter::is_target;
use super::finish::walk_and_send;
use super::maps::{CALL_SCRATCH, POINT_ORDERS, POINT_PACE, SCRATCH, Scratch, count};
use super::walk::{mappings_of, walk};
use super::{python, record, registers, stacks, tick};
use aya_ebpf::EbpfContext as _;
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
    // SAFETY: a field of a perf event program's context.
    let period = unsafe { (*ctx.ctx).sample_period };
    count(counter::HAPPENED, period);
    if id == 0 || !is_target((id >> 32) as u32, id as u32) {
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    record::begin(scratch, event::HAPPENING, start_ns, id);
    begin_with(period, scratch);
    tick::interrupted::<HAPPENING_WORDS>(ctx, scratch);
    walk_and_send(scratch, |is_sent| count_sample(is_sent, period));
    count(
        counter::HAPPENINGS_SPENT_NS,
        now_ns().wrapping_sub(start_ns),
    );
}

#[inline(always)]
fn pass(ctx: *mut c_void) {
    let (Some(orders), Some(pace)) = (POINT_ORDERS.get_ptr(0), POINT_PACE.get_ptr_mut(0)) else {
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
    if !pace.is_drawn(unsafe { helpers::bpf_get_prandom_u32() }) {
        return;
    }
    let start_ns = now_ns();
    let period = pace.take(start_ns, stacks);
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
