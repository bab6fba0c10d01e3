//! The description of a probe: everything that does not change while it counts.

use std::sync::Arc;

/// A probe as it was placed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeAbout {
    /// Name of the function, demangled; `module+0xoffset` if it has no name.
    pub name: Arc<str>,
    /// The short name of its file.
    pub module: Arc<str>,
    /// Link-time address of the function's start.
    pub address: u64,
    /// Identifier of the language of its code: `c`, `go`.
    pub language: Arc<str>,
    /// Where in the function a call is counted: `entry`, `inside`.
    pub site: Arc<str>,
    /// Which processes' calls count, in words; empty if those of all targets.
    pub whose: Arc<str>,
    /// Number of copies of the function that have the probe.
    pub copies: u32,
    /// Number of breakpoints in all copies, including those at their ends.
    pub breakpoints: u32,
    /// Whether the probed instruction is executed by a single step, which costs more than one that
    /// the kernel emulates.
    pub is_stepped: bool,
    /// Whether the ends of calls are seen, so that calls are timed.
    pub is_timed: bool,
    /// Whether a loop begins at the function's first instruction: each iteration counts as a call.
    pub repeats: bool,
    /// Measured cost of one hit for the program, in nanoseconds.
    pub hit_ns: u64,
    /// The time that is displayed for a call that does nothing, in nanoseconds.
    pub floor_ns: u64,
    /// Calls shorter than this are only counted, in nanoseconds; 0 if there is no such limit.
    pub min_ns: u64,
    /// When the probe was placed, on the clock of the samples.
    pub placed_ns: u64,
    /// The values that were read at each call.
    pub values: Vec<ValueAbout>,
}

/// A value that was read at each call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueAbout {
    /// The expression, as it was typed.
    pub text: Arc<str>,
    /// Where the value is: `rdi`, `stack+8`.
    pub register: Arc<str>,
}
