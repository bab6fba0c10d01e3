//! The clock by which samples and events are ordered.

/// Returns the time on `CLOCK_MONOTONIC`, as in samples and events.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
