//! The event *tick*: a sampling clock finds a thread on a CPU.

use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind, period_of};
use aya::programs::ProgramFd;
use std::io;
use std::os::fd::AsFd as _;

/// The program in `probe-ebpf/src/bpf/tick.rs`.
pub const PROGRAM: &str = "tick";

/// A tick stands for one period, whatever that is.
pub const WEIGHT: u64 = 1;

/// Opens the clock of one CPU, which runs the program at each tick.
pub fn attach(program: &ProgramFd, cpu: u32, rate_hz: u32) -> io::Result<PerfEvent> {
    let clock = PerfEvent::open(
        Attributes {
            kind: kind::SOFTWARE,
            config: kind::SOFTWARE_CPU_CLOCK,
            period: period_of(rate_hz),
            flags: flags::DISABLED | flags::EXCLUDE_IDLE,
            ..Attributes::default()
        },
        Tasks::All,
        cpu,
    )?;
    clock.attach(program.as_fd())?;
    clock.enable()?;
    Ok(clock)
}
