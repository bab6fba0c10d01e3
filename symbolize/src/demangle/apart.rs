//! Work on a thread with a large stack, which is left alone if the work takes too long.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Stack size of the threads. Only the used pages take memory.
const STACK_BYTES: usize = 24 << 20;

/// CPU time of the process, and time, after which one piece of work takes too long. Other threads of
/// the process use CPU time as well, and on a busy machine a thread has to wait for a CPU.
const CPU_TIME_MAX: Duration = Duration::from_millis(200);
const TIME_MAX: Duration = Duration::from_millis(500);

/// Maximum time of one piece of work on a machine whose CPUs are busy.
const TIME_MAX_WHEN_BUSY: Duration = Duration::from_secs(2);

/// How often the times are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Work that takes longer than this is slow.
const SLOW: Duration = Duration::from_millis(20);

/// Maximum CPU time of slow work. When it is reached, no more work is done apart.
const SLOW_SUM_MAX: Duration = Duration::from_secs(1);

/// Maximum number of threads that still run although nothing waits for them. When it is reached, no
/// more work is done apart: the threads run until the process ends.
const LEFT_ALONE_MAX: usize = 2;

/// What work has taken too long in this process.
#[derive(Debug)]
pub struct Apart {
    /// Number of threads that were left alone.
    left_alone: AtomicUsize,
    /// CPU time of slow work that has ended, in milliseconds.
    slow_ms: AtomicU64,
}

impl Apart {
    pub const fn new() -> Apart {
        Apart {
            left_alone: AtomicUsize::new(0),
            slow_ms: AtomicU64::new(0),
        }
    }

    /// Whether a thread was left alone, or there may be no more work.
    pub fn is_worn(&self) -> bool {
        self.left_alone.load(Relaxed) > 0 || self.is_over()
    }

    /// Does some work on a thread of its own. Returns None if it takes too long, or if there can be
    /// no such thread.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let result = Arc::new(Mutex::new(None));
        let (into, waiting) = (Arc::clone(&result), thread::current());
        let run = move || {
            let done = work();
            *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            waiting.unpark();
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn(run).ok()?;
        let (began, used_before) = (Instant::now(), cpu_time());
        let used = || cpu_time().saturating_sub(used_before);
        loop {
            thread::park_timeout(LOOK_EVERY);
            // Looked at before the result, which a thread that has finished does not change.
            let has_finished = thread.is_finished();
            let done = result.lock().unwrap_or_else(PoisonError::into_inner).take();
            if done.is_some() || has_finished {
                self.note(used());
                return done;
            }
            let time = began.elapsed();
            if time > TIME_MAX && used() > CPU_TIME_MAX || time > TIME_MAX_WHEN_BUSY {
                self.left_alone.fetch_add(1, Relaxed);
                return None;
            }
        }
    }

    fn note(&self, used: Duration) {
        if used > SLOW {
            let ms = used.as_millis().try_into().unwrap_or(u64::MAX);
            self.slow_ms.fetch_add(ms, Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.left_alone.load(Relaxed) >= LEFT_ALONE_MAX
            || Duration::from_millis(self.slow_ms.load(Relaxed)) > SLOW_SUM_MAX
    }
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_that_ends_is_done() {
        let apart = Apart::new();
        assert_eq!(apart.run(|| 1 + 1), Some(2));
        assert!(!apart.is_worn());
    }

    #[test]
    fn work_that_does_not_end_is_left_alone_twice() {
        let apart = Apart::new();
        let mut ends = Vec::new();
        for _ in 0..LEFT_ALONE_MAX {
            let (end, ended) = channel::<()>();
            ends.push(end);
            assert_eq!(apart.run(move || ended.recv().is_ok()), None);
            assert!(apart.is_worn());
        }
        assert_eq!(apart.run(|| 1 + 1), None);
    }

    #[test]
    fn slow_work_is_done_for_a_second() {
        let apart = Apart::new();
        for _ in 0..1000 {
            apart.note(SLOW);
        }
        assert_eq!(apart.run(|| 1 + 1), Some(2));
        apart.note(SLOW_SUM_MAX + SLOW);
        assert!(apart.is_worn());
        assert_eq!(apart.run(|| 1 + 1), None);
    }
}
