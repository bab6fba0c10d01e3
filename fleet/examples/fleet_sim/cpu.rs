//! CPU time, which says more than time on a machine that others use as well.

use std::time::{Duration, Instant};

/// Length of the unit of times in `/proc/PID/stat`.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time of the calling thread.
pub fn of_thread() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// Returns the CPU time of this process.
pub fn of_process() -> Duration {
    times(11)
}

/// Returns the CPU time of all children that have ended.
fn of_children() -> Duration {
    times(13)
}

/// Returns the sum of two fields of `/proc/self/stat`, which are counted behind the program's name.
fn times(first: usize) -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may have spaces, and ends with the last parenthesis.
    let after = text.rsplit(')').next().unwrap_or_default();
    let fields = after.split_whitespace().skip(first).take(2);
    let ticks: u32 = fields.filter_map(|it| it.parse::<u32>().ok()).sum();
    TICK * ticks
}

/// What something has taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    pub wall: Duration,
    pub cpu: Duration,
}

/// Measures work that child processes do.
pub fn children<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let (begun, before) = (Instant::now(), of_children());
    let done = work();
    let taken = Taken {
        wall: begun.elapsed(),
        cpu: of_children().saturating_sub(before),
    };
    (done, taken)
}

/// Returns the percentile of a list: the value that this percentage of the list does not exceed.
pub fn percentile(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(at).copied().unwrap_or(0.0)
}
