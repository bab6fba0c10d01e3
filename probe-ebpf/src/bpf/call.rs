//! The event *call*: a function that has a probe is called, or returns.
//!
//! Unlike the clock's program, these run with interrupts on: another thread, or the clock, may
//! interrupt them on the same CPU. So all counts are added atomically, and the room for a
//! stack is claimed and released.

use super::clock::now_ns;
use super::filter::is_target;
use super::maps::{CALL_ORDERS, CALL_SCRATCH, CALL_STARTS, CALL_TALLIES};
use super::walk::{mappings_of, walk};
use super::{hit, python, record, saved_registers, values};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::macros::{uprobe, uretprobe};
use aya_ebpf::programs::{ProbeContext, RetProbeContext};
use core::ffi::c_void;
use probe_ebpf::atomic::{add, swap};
use probe_ebpf::calls::{Cookie, Orders, PROBES_MAX, Tally, histogram, order, site, starts};
use probe_ebpf::record::event;
use probe_ebpf::status;

/// Runs when a call begins.
#[uprobe]
pub fn call_begins(ctx: ProbeContext) -> u32 {
    begins(ctx.regs, ctx.as_ptr());
    0
}

/// Runs when a call has ended, or is at a `ret` instruction.
#[uretprobe]
pub fn call_ends(ctx: RetProbeContext) -> u32 {
    ends(ctx.as_ptr() as *mut pt_regs, ctx.as_ptr());
    0
}

#[inline(always)]
fn begins(regs: *mut pt_regs, ctx: *mut c_void) {
    // SAFETY: a helper that takes the context.
    let cookie = Cookie(unsafe { helpers::bpf_get_attach_cookie(ctx) });
    // SAFETY: the context's registers.
    if cookie.has(site::UNLESS_TAKEN) && is_below_or_equal(unsafe { (*regs).eflags }) {
        return;
    }
    hit::note(regs, cookie.has(site::REPLACED));
    let Some((orders, tally)) = probe(cookie.probe()) else {
        return;
    };
    // SAFETY: a value of a live map; a word cannot be torn.
    let flags = unsafe { (*orders).flags };
    if is_strangers(flags) {
        count(tally, |tally| &raw mut tally.others);
        return;
    }
    count(tally, |tally| &raw mut tally.calls);
    // SAFETY: the context's registers.
    let sp = unsafe { (*regs).rsp }.wrapping_add(cookie.pushed());
    if flags & order::VALUES != 0 {
        let when = values::AT_BEGINNING | u64::from(cookie.probe());
        values::read(regs, orders, tally, when, sp);
    }
    if flags & order::STACKS != 0 && is_drawn(orders) {
        take_stack(regs, tally, event::CALL, cookie.probe());
    }
    if flags & order::TIMED != 0 {
        let key = key_of(regs, cookie, orders, sp);
        if let Some(bucket) = CALL_STARTS.get_ptr_mut(starts::bucket_of(key)) {
            // SAFETY: a value of a live map.
            unsafe { starts::keep(bucket, key, now_ns) };
        }
    }
}

#[inline(always)]
fn ends(regs: *mut pt_regs, ctx: *mut c_void) {
    let end_ns = now_ns();
    // SAFETY: a helper that takes the context.
    let cookie = Cookie(unsafe { helpers::bpf_get_attach_cookie(ctx) });
    let Some((orders, tally)) = probe(cookie.probe()) else {
        return;
    };
    // SAFETY: values of a live map.
    let (flags, min_ns) = unsafe { ((*orders).flags, (*orders).min_ns) };
    if is_strangers(flags) {
        return;
    }
    // SAFETY: the context's registers.
    let sp = unsafe { (*regs).rsp };
    // After a `ret`, the stack pointer is already above the return address.
    let sp = if cookie.has(site::AT_RETURN) {
        sp
    } else {
        sp.wrapping_sub(8)
    };
    let key = key_of(regs, cookie, orders, sp);
    let bucket = CALL_STARTS.get_ptr_mut(starts::bucket_of(key));
    // SAFETY: a value of a live map.
    let Some(start_ns) = bucket.and_then(|bucket| unsafe { starts::take(bucket, key) }) else {
        count(tally, |tally| &raw mut tally.strangers);
        return;
    };
    let spent_ns = end_ns.wrapping_sub(start_ns);
    if spent_ns < min_ns {
        count(tally, |tally| &raw mut tally.short);
        return;
    }
    add_time(tally, spent_ns);
    if flags & order::RESULTS != 0 {
        let when = values::AT_END | u64::from(cookie.probe());
        values::read(regs, orders, tally, when, sp);
    }
    if flags & order::SLOW_STACKS != 0 && is_drawn(orders) {
        take_stack(regs, tally, event::SLOW_CALL, cookie.probe());
    }
}

/// Returns whether a hit does not count, because the current task is no target.
#[inline(always)]
fn is_strangers(flags: u32) -> bool {
    if flags & order::EVERYBODY != 0 {
        return false;
    }
    let id = bpf_get_current_pid_tgid();
    !is_target((id >> 32) as u32, id as u32)
}

/// Returns the orders for the probe, and its counts on this CPU.
#[inline(always)]
pub fn probe(number: u32) -> Option<(*const Orders, *mut Tally)> {
    let number = number & (PROBES_MAX as u32 - 1);
    Some((
        CALL_ORDERS.get_ptr(number)?,
        CALL_TALLIES.get_ptr_mut(number)?,
    ))
}

#[inline(always)]
/// Adds 1 to the word of the tally that `word` chooses.
pub fn count(tally: *mut Tally, word: impl FnOnce(&mut Tally) -> *mut u64) {
    // SAFETY: a value of a live map, in which `word` chooses a word.
    unsafe { add(word(&mut *tally), 1) };
}

#[inline(always)]
fn add_time(tally: *mut Tally, ns: u64) {
    let bucket = histogram::bucket(ns) as usize & (histogram::BUCKETS - 1);
    // SAFETY: a value of a live map; the mask keeps the bucket inside of it.
    unsafe {
        add((&raw mut (*tally).histogram as *mut u64).add(bucket), 1);
        add(&raw mut (*tally).sum_ns, ns);
        if (*tally).max_ns < ns {
            (*tally).max_ns = ns;
        }
    }
}

/// Returns the key by which the end of a call finds its beginning.
#[inline(always)]
fn key_of(regs: *mut pt_regs, cookie: Cookie, orders: *const Orders, sp: u64) -> u64 {
    // SAFETY: a value of a live map.
    let probe = unsafe { (*orders).generation };
    if !cookie.has(site::GO) {
        // No other thread has its saved registers at that address.
        return starts::key(starts::difference(regs, orders), sp, probe);
    }
    // `g` is in r14 (Go's cmd/compile/abi-internal.md), and begins with the bounds of
    // its stack. A stack that moves keeps the distance to its upper end.
    // SAFETY: the context's registers.
    let goroutine = unsafe { (*regs).r14 };
    let mut end = 0u64;
    // SAFETY: the helper checks the address and writes 8 bytes to `end`.
    unsafe {
        helpers::bpf_probe_read_user(
            &raw mut end as *mut c_void,
            8,
            goroutine.wrapping_add(8) as *const c_void,
        )
    };
    // Other processes have the same addresses.
    let process = bpf_get_current_pid_tgid() >> 32 << 32;
    starts::key(goroutine, end.wrapping_sub(sp), probe ^ process)
}

/// Returns whether a `jbe` would jump: the carry flag or the zero flag is set.
#[inline(always)]
fn is_below_or_equal(flags: u64) -> bool {
    flags & 0x41 != 0
}

/// Returns whether this call is drawn to record its stack.
#[inline(always)]
pub fn is_drawn(orders: *const Orders) -> bool {
    // SAFETY: a helper without arguments, and a value of a live map.
    unsafe { helpers::bpf_get_prandom_u32() <= (*orders).stack_odds }
}

/// Walks the stack into a record of its own. Not inlined, so that it has registers and a
/// stack frame of its own.
#[inline(never)]
fn take_stack(regs: *mut pt_regs, tally: *mut Tally, event: u8, probe: u32) -> u32 {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { helpers::bpf_get_smp_processor_id() };
    let Some(room) = CALL_SCRATCH.get_ptr_mut(cpu) else {
        return 0;
    };
    let id = bpf_get_current_pid_tgid();
    let list = mappings_of((id >> 32) as u32);
    let is_known = list.length() != 0;
    // SAFETY: values of live maps.
    unsafe {
        if swap(&raw mut (*room).busy, 1) != 0 {
            add(&raw mut (*tally).stacks_lost, 1);
            return 0;
        }
        let scratch = &raw mut (*room).scratch;
        record::begin(scratch, event, now_ns(), id);
        (*scratch).header.probe = probe as u8;
        if is_known {
            saved_registers::interrupted(regs, scratch);
            if (*scratch).walk.status == status::CALLER {
                walk(scratch, list, &raw mut (*room).cache);
                python::frames(scratch);
            }
        }
        // If the process's tables are not in place, a record without frames asks for them.
        if record::submit(scratch) == 0 && is_known {
            add(&raw mut (*tally).stacks, 1);
        } else {
            add(&raw mut (*tally).stacks_lost, 1);
        }
        swap(&raw mut (*room).busy, 0);
    }
    0
}
