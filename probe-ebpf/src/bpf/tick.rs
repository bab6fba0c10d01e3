//! The event *tick*: the sampling clock of a CPU finds a task running.

use super::clock::now_ns;
use super::filter::is_target;
use super::finish::walk_and_send;
use super::maps::{SCRATCH, Scratch, count};
use super::{record, registers, saved_registers, stacks};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::perf_event;
use aya_ebpf::programs::PerfEventContext;
use probe_ebpf::record::event;
use probe_ebpf::settings::counter;

/// Runs at each tick of the sampling clock of a CPU.
#[perf_event]
pub fn tick(ctx: PerfEventContext) -> u32 {
    take(&ctx);
    0
}

// The steps leave what they find in the map and not in registers: to the verifier
// a value from memory is any value, so that it checks what comes after once,
// and not once for each path that leads there.
#[inline(always)]
fn take(ctx: &PerfEventContext) {
    let start_ns = now_ns();
    let id = bpf_get_current_pid_tgid();
    let (tgid, tid) = ((id >> 32) as u32, id as u32);
    if id == 0 {
        count(counter::IDLE, 1);
        return;
    }
    if !is_target(tgid, tid) {
        count(counter::FILTERED, 1);
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    record::begin(scratch, event::TICK, start_ns, id);
    interrupted::<0>(ctx, scratch);
    walk_and_send(scratch, |is_sent| {
        if is_sent {
            count(counter::TAKEN, 1);
        } else {
            count(counter::LOST, 1);
        }
    });
    count(counter::SPENT_NS, now_ns().wrapping_sub(start_ns));
}

/// Takes the registers of the program that was interrupted and, if the CPU was in the kernel,
/// the kernel's stack, which is written behind the `WORDS` words that the record has already.
#[inline(always)]
pub fn interrupted<const WORDS: usize>(ctx: &PerfEventContext, scratch: *mut Scratch) {
    // SAFETY: a perf event program's context holds the interrupted registers.
    let interrupted = unsafe { &raw const (*ctx.ctx).regs };
    if saved_registers::is_user(interrupted) {
        saved_registers::interrupted(interrupted, scratch);
    } else {
        stacks::kernel_behind::<WORDS>(ctx.as_ptr(), scratch);
        registers::at_entry(scratch);
    }
}
