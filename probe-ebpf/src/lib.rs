//! What the kernel side and the user side of proftop share: the records in the
//! ring buffer, the limits, and the step from one stack frame to its caller.
//!
//! This crate builds for the host, where all of it is tested, and for BPF,
//! where `main.rs` adds the programs. Nothing in here allocates, panics or
//! knows which side it is on.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

#[cfg(test)]
extern crate std;

pub mod atomic;
pub mod calls;
pub mod ending;
pub mod frame_pointer;
pub mod happenings;
pub mod interrupts;
pub mod limits;
pub mod machine;
pub mod python;
pub mod record;
pub mod registers;
pub mod rule;
pub mod settings;
pub mod status;
pub mod table;
pub mod waits;
pub mod walk;
pub mod world;

pub use ending::Ending;
pub use record::{RawStack, SampleHeader, UserFrame};
pub use registers::Registers;

/// Number of rounds of a test; fewer where Miri interprets it, a thousand times slower.
#[cfg(test)]
const fn rounds(count: u64) -> u64 {
    if cfg!(miri) { count / 100 } else { count }
}
