//! The time by which a sink works: that of the machine, or one that a simulation sets, in which hours
//! pass in seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The time of a sink.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    #[default]
    Machine,
    /// In ms since 1970. Only the simulation, and waiting, move it.
    Simulated(Arc<AtomicU64>),
}

impl Clock {
    /// Returns the time in ms since 1970.
    pub fn now_ms(&self) -> u64 {
        match self {
            Clock::Machine => crate::dates::now_ms().max(0) as u64,
            Clock::Simulated(now_ms) => now_ms.load(Ordering::Relaxed),
        }
    }

    /// Waits.
    pub fn sleep(&self, time: Duration) {
        match self {
            Clock::Machine => thread::sleep(time),
            Clock::Simulated(now_ms) => {
                let ms = time.as_nanos().div_ceil(1_000_000) as u64;
                now_ms.fetch_add(ms, Ordering::Relaxed);
            }
        }
    }
}
