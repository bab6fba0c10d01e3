//! The event *tick*: a sampling clock finds a thread on a CPU.

mod pair;
mod rhythm;
mod turns;

pub use pair::Pair;
pub use turns::Turns;

use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind};
use aya::programs::ProgramFd;
use std::io;
use std::os::fd::AsFd as _;

/// The program in `probe-ebpf/src/bpf/tick.rs`.
pub const PROGRAM: &str = "tick";

/// A tick stands for one period, whatever its length is.
pub const WEIGHT: u64 = 1;

/// Opens the clocks of one CPU, which run the program at each tick.
pub fn attach(program: &ProgramFd, cpu: u32, rate_hz: u32) -> io::Result<Pair> {
    let mut pair = Pair::open(rate_hz, |period| {
        let attributes = Attributes {
            kind: kind::SOFTWARE,
            config: kind::SOFTWARE_CPU_CLOCK,
            period,
            flags: flags::DISABLED | flags::EXCLUDE_IDLE,
            ..Attributes::default()
        };
        let clock = PerfEvent::open(attributes, Tasks::All, cpu)?;
        clock.attach(program.as_fd())?;
        Ok(clock)
    })?;
    pair.enable()?;
    Ok(pair)
}
