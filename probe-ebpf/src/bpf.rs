//! The programs, and what every one of them needs.

mod filter;
mod maps;
mod sample;
mod walk;
mod world;

use aya_ebpf::macros::{btf_tracepoint, perf_event};
use aya_ebpf::programs::{BtfTracePointContext, PerfEventContext};

/// One tick of the sampling clock on one CPU.
#[perf_event]
pub fn sample(ctx: PerfEventContext) -> u32 {
    sample::take(&ctx);
    0
}

/// A task was created: children of targets become targets before they run.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn follow_fork(ctx: BtfTracePointContext) -> i32 {
    filter::follow_fork(&ctx);
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
