//! The same work on many things, by threads that end with the call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `work` gives for each number up to `count`, if anything, in the order of the
/// numbers. They are begun in that order; each thread has a state of its own.
pub fn map<S: Default, T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize, &mut S) -> Option<T> + Sync,
) -> Vec<(usize, T)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let run = || {
        let mut mine = Vec::new();
        let mut state = S::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            mine.extend(work(index, &mut state).map(|result| (index, result)));
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.extend(mine);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count).max(1) {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Whoever finished first, the result is the same.
    done.sort_unstable_by_key(|(index, _)| *index);
    done
}
