//! Distributes equal work over several threads, which end before the call returns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Returns the results of `work` for each number below `count`, in the order of the numbers,
/// without the `None`s. Work is begun in that order; each thread has a state of its own.
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
    // The result does not depend on which thread finished first.
    done.sort_unstable_by_key(|(index, _)| *index);
    done
}
