//! The BPF programs. Each kind of event has a file with its program:
//!
//! | event | file |
//! |---|---|
//! | the sampling clock ticks | `tick` |
//! | a function that has a probe is called | `call`, with `values` |
//! | the kernel passes a tracepoint that has a probe | `point` |
//! | something else that is counted has happened | `happening` |
//! | a thread has waited | `wait`, and `open_wait` for waits that are not over |
//!
//! The other files hold what the events share: who is a target (`filter`), registers and
//! stacks of the current task (`registers`, `stacks`, `walk` over its `world`), its Python
//! frames (`python`), a copy of its stack (`raw`), the record (`record`, sent
//! by `finish`), what the kernel has saved of registers, for each machine
//! (`saved_registers`), where a thread that is stopped by a probe is (`hit`, `probed`),
//! the lists of processes (`processes`, with programs of its own), the `threads` whose waits
//! are followed, the `current_task`, whether an `interrupt` runs,
//! reads of single words of `memory`,
//! the time (`clock`), and all maps (`maps`).
//! The objects for AArch64 and for kernels without `bpf_loop` have only the clock's event. The
//! loops of the latter are in `without_loop`.
#![cfg_attr(
    any(feature = "aarch64", feature = "without_loop"),
    allow(
        dead_code,
        unused_imports,
        reason = "what the events need that it does not have"
    )
)]

#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod call;
mod clock;
mod current_task;
mod filter;
mod finish;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod happening;
mod hit;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod interrupt;
mod maps;
mod memory;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod open_wait;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod point;
mod probed;
mod processes;
mod python;
mod raw;
mod record;
mod registers;
mod saved_registers;
mod stacks;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod threads;
mod tick;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod values;
#[cfg(not(any(feature = "aarch64", feature = "without_loop")))]
mod wait;
mod walk;
#[cfg(feature = "without_loop")]
mod without_loop;
mod world;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
