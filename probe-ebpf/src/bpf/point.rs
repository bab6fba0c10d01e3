//! The event *call* at a tracepoint of the kernel: the kernel passes a place that its authors
//! have marked.
//!
//! Before Linux 6.10, a raw tracepoint does not tell its program for which probe it was attached.
//! So there are as many programs as tracepoints can be probed, each with the number of its probe,
//! and all of them call one function. A program is loaded when its probe is placed.
//!
//! They run wherever the kernel does, interrupts included, with preemption off. In an interrupt,
//! the current task is the interrupted one. If a program is hit while it runs on the same CPU,
//! the kernel does not run it once more, and counts that (`recursion_misses`).

use super::call::{count, is_drawn, probe};
use super::clock::now_ns;
use super::filter::is_target;
use super::maps::CALL_SCRATCH;
use super::walk::{mappings_of, walk};
use super::{python, record, registers, stacks, values};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use core::ffi::c_void;
use probe_ebpf::atomic::{add, swap};
use probe_ebpf::calls::{FEW_MAX, FIRST_POINT, Orders, Tally, order};
use probe_ebpf::record::event;
use probe_ebpf::status;

/// Defines the programs, each with its place among them.
macro_rules! points {
    ($($name:ident $place:literal)*) => {$(
        #[raw_tracepoint]
        pub fn $name(ctx: RawTracePointContext) -> i32 {
            hit(ctx.as_ptr(), FIRST_POINT as u32 + $place);
            0
        }
    )*};
}

points! {
    point_0 0 point_1 1 point_2 2 point_3 3 point_4 4 point_5 5 point_6 6 point_7 7
    point_8 8 point_9 9 point_10 10 point_11 11 point_12 12 point_13 13 point_14 14 point_15 15
}

#[inline(always)]
fn hit(ctx: *mut c_void, number: u32) {
    let Some((orders, tally)) = probe(number) else {
        return;
    };
    let id = bpf_get_current_pid_tgid();
    let tgid = (id >> 32) as u32;
    // SAFETY: values of a live map; a word cannot be torn.
    let (flags, arguments) = unsafe { ((*orders).flags, (*orders).arguments) };
    let is_of_few = flags & order::FEW == 0 || is_of_few(orders, tgid);
    if !is_of_few || flags & order::EVERYBODY == 0 && !is_target(tgid, id as u32) {
        count(tally, |tally| &raw mut tally.others);
        return;
    }
    count(tally, |tally| &raw mut tally.calls);
    if flags & order::VALUES != 0 {
        values::read_of_point(ctx, arguments, orders, tally, number);
    }
    if flags & order::STACKS != 0 && is_drawn(orders) {
        take_stack(ctx, tally, number);
    }
}

/// Returns whether the process is one of those that the probe is narrowed to.
#[inline(always)]
fn is_of_few(orders: *const Orders, tgid: u32) -> bool {
    let mut is_one = false;
    for place in 0..FEW_MAX {
        // SAFETY: a value of a live map, and a place inside of its array.
        let pid = unsafe { *(&raw const (*orders).few as *const u32).add(place) };
        is_one |= pid == tgid;
    }
    is_one && tgid != 0
}

/// Puts the stack into a record: what the kernel was doing, and from where the program
/// called it. Not inlined, so that it has registers and a stack frame of its own.
#[inline(never)]
fn take_stack(ctx: *mut c_void, tally: *mut Tally, probe: u32) -> u32 {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { helpers::bpf_get_smp_processor_id() };
    let Some(room) = CALL_SCRATCH.get_ptr_mut(cpu) else {
        return 0;
    };
    let id = bpf_get_current_pid_tgid();
    let list = mappings_of((id >> 32) as u32);
    // SAFETY: values of live maps.
    unsafe {
        if swap(&raw mut (*room).busy, 1) != 0 {
            add(&raw mut (*tally).stacks_lost, 1);
            return 0;
        }
        let scratch = &raw mut (*room).scratch;
        record::begin(scratch, event::CALL, now_ns(), id);
        (*scratch).header.probe = probe as u8;
        registers::at_entry(scratch);
        // If the process's tables are not in place, a record without frames asks for them.
        let is_asking = (*scratch).walk.status == status::CALLER && list.length() == 0;
        if !is_asking {
            stacks::kernel(ctx, scratch);
            if (*scratch).walk.status == status::CALLER {
                walk(scratch, list, &raw mut (*room).cache);
                python::frames(scratch);
            }
        }
        if record::submit(scratch) == 0 && !is_asking {
            add(&raw mut (*tally).stacks, 1);
        } else {
            add(&raw mut (*tally).stacks_lost, 1);
        }
        swap(&raw mut (*room).busy, 0);
    }
    0
}
