//! The programs, and what every one of them needs.

mod filter;
mod lifecycle;
mod maps;
mod raw;
mod sample;
mod walk;
mod world;

use aya_ebpf::macros::{perf_event, raw_tracepoint};
use aya_ebpf::programs::{PerfEventContext, RawTracePointContext};

/// One tick of the sampling clock on one CPU.
#[perf_event]
pub fn sample(ctx: PerfEventContext) -> u32 {
    sample::take(&ctx);
    0
}

/// A task was created.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn follow_fork(ctx: RawTracePointContext) -> i32 {
    lifecycle::follow_fork(&ctx);
    0
}

/// A task has become another program.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn follow_exec(_ctx: RawTracePointContext) -> i32 {
    lifecycle::follow_exec();
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
