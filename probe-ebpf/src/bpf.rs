//! The programs. One file for each kind of event has its program:
//!
//! | event | file |
//! |---|---|
//! | the sampling clock ticks | `tick` |
//!
//! and the others hold what events share: who is a target (`filter`), registers and
//! stacks of the current task (`registers`, `stacks`, `walk` over its `world`), a
//! copy of its stack (`raw`), the record (`record`), the lists of processes
//! (`processes`, with programs of its own), and all maps (`maps`).

mod filter;
mod maps;
mod processes;
mod raw;
mod record;
mod registers;
mod stacks;
mod tick;
mod walk;
mod world;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
