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
    let mut done: Vec<Option<T>> = Vec::new();
    done.resize_with(count, || None);
    let done = Mutex::new(done);
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
        for (index, result) in mine {
            done[index] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count).max(1) {
            scope.spawn(run);
        }
        run();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let with_index = |(index, result): (usize, Option<T>)| Some((index, result?));
    done.into_iter()
        .enumerate()
        .filter_map(with_index)
        .collect()
}
