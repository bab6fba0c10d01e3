//! What a probe was, and where: all that does not change while it counts.

use std::sync::Arc;

/// A probe as it was placed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeAbout {
    /// The function, demangled; `module+0xoffset` if it has no name.
    pub name: Arc<str>,
    /// The short name of its file.
    pub module: Arc<str>,
    /// Where the function starts, as the linker wrote it.
    pub address: u64,
    /// The language of its code, in words: `c`, `go`.
    pub language: Arc<str>,
    /// Where in the function calls are seen, in words: `entry`, `inside`.
    pub site: Arc<str>,
    /// Whose calls count, in words; empty for those of all targets.
    pub whose: Arc<str>,
    /// Copies of the function that have the probe.
    pub copies: u32,
    /// Breakpoints in all copies, those at their ends included.
    pub breakpoints: u32,
    /// The instruction where calls are seen is run by a single step, which costs more than
    /// one that the kernel emulates.
    pub is_stepped: bool,
    /// The ends of calls are seen.
    pub is_timed: bool,
    /// A loop begins at its first instruction: each round counts as a call.
    pub repeats: bool,
    /// What one hit costs the program, as it was measured, in nanoseconds.
    pub hit_ns: u64,
    /// What is shown as the time of a call that does nothing, in nanoseconds.
    pub floor_ns: u64,
    /// Calls shorter than that are only counted; 0 if there is no such bound.
    pub min_ns: u64,
    /// When it was placed, on the clock of the samples.
    pub placed_ns: u64,
    /// The values that were read at each call.
    pub values: Vec<ValueAbout>,
}

/// A value that was read at each call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueAbout {
    /// The expression, as it was typed.
    pub text: Arc<str>,
    /// Where it was, in words: `rdi`, `stack+8`.
    pub register: Arc<str>,
}
