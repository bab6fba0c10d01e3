//! The programs. One file for each kind of event has its program:
//!
//! | event | file |
//! |---|---|
//! | the sampling clock ticks | `tick` |
//! | a function is called that has a probe | `call`, with `values` |
//! | the kernel passes a tracepoint that has a probe | `point` |
//! | something else that is counted happens | `happening` |
//! | a thread has waited | `wait`, and `open_wait` of those that wait still |
//!
//! and the others hold what events share: who is a target (`filter`), registers and
//! stacks of the current task (`registers`, `stacks`, `walk` over its `world`), a
//! Python's own frames (`python`), a copy of its stack (`raw`), the record (`record`, sent
//! by `finish`), what the kernel has saved of registers, for each machine
//! (`saved_registers`), where a thread is that has been caught by a probe (`hit`, `probed`),
//! the lists of processes (`processes`, with programs of its own), whether an `interrupt` runs,
//! single words of `memory`,
//! the time (`clock`), and all maps (`maps`).
//!
//! The object for AArch64 has the clock's event alone.
#![cfg_attr(
    feature = "aarch64",
    allow(dead_code, reason = "what the events need that it does not have")
)]

#[cfg(not(feature = "aarch64"))]
mod call;
mod clock;
mod filter;
mod finish;
#[cfg(not(feature = "aarch64"))]
mod happening;
mod hit;
#[cfg(not(feature = "aarch64"))]
mod interrupt;
mod maps;
mod memory;
#[cfg(not(feature = "aarch64"))]
mod open_wait;
#[cfg(not(feature = "aarch64"))]
mod point;
mod probed;
mod processes;
mod python;
mod raw;
mod record;
mod registers;
mod saved_registers;
mod stacks;
#[cfg(not(feature = "aarch64"))]
mod threads;
mod tick;
#[cfg(not(feature = "aarch64"))]
mod values;
#[cfg(not(feature = "aarch64"))]
mod wait;
mod walk;
mod world;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
