//! Tables of Go programs: made by hand in every layout, built by the go command, and
//! damaged.

#[path = "../unwind/elf.rs"]
#[allow(dead_code, reason = "made for tables of another kind")]
mod elf;

mod built;
mod damage;
mod layouts;
mod program;
