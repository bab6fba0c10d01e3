//! Unwind tables of hand-made, real, random and damaged files.

#[path = "../../examples/unwind_check/frames.rs"]
mod frames;
#[path = "../../examples/unwind_check/oracle.rs"]
mod oracle;
#[path = "../../examples/unwind_check/ranges.rs"]
mod ranges;

mod aarch64;
mod cfi;
mod damage;
mod elf;
mod files;
mod places;
mod random;
mod rules;
