//! The followed threads, shared by both sides: see [`probe_ebpf::waits::places`].

use super::record::ThreadTotals;
use crate::error::Error;
use crate::plain::Plain;
use crate::shared::Shared;
use crate::time::now_ns;
use aya::maps::{Array, MapData, MapError};
use probe_ebpf::waits::Thread;
use probe_ebpf::waits::places::{BUSY, FREE, PLACES, WAYS, claim, find, row_of};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Thread> {}

/// How often reading a thread is repeated if its sums change meanwhile.
const TRIES: usize = 3;

/// The threads.
pub struct Threads {
    /// Which place belongs to which thread.
    places: Shared,
    /// The state of each thread, at its place.
    kept: Array<MapData, Plain<Thread>>,
}

impl Threads {
    /// Opens the maps `THREAD_PLACES` and `THREADS`.
    pub fn new(places: &MapData, kept: Array<MapData, Plain<Thread>>) -> Result<Self, Error> {
        let places =
            Shared::map(places.fd().as_fd(), 0, PLACES * size_of::<u64>()).map_err(|error| {
                Error::Map {
                    name: "THREAD_PLACES",
                    source: MapError::IoError(error),
                }
            })?;
        Ok(Self { places, kept })
    }

    /// Adds a thread. Returns false if it is already there, or if there is no room.
    pub fn add(&mut self, tid: u32, thread: &Thread) -> bool {
        let first = row_of(tid);
        let row = &self.places.double_words()[first..first + WAYS];
        // SAFETY: the words of a row, which both sides change in single steps only.
        let place = unsafe {
            match find(row.as_ptr().cast_mut().cast(), tid) {
                Some(_) => None,
                None => claim(row.as_ptr().cast_mut().cast()),
            }
        };
        let Some(way) = place else {
            return false;
        };
        let is_written = self
            .kept
            .set((first + way) as u32, Plain(*thread), 0)
            .is_ok();
        row[way].store(if is_written { tid.into() } else { FREE }, Ordering::SeqCst);
        // The kernel side may have added it at the same time.
        is_written && free_repeated(row) == 0
    }

    /// Reads all threads. One that changes during each attempt is left out until the next call.
    pub fn read(&self, into: &mut Vec<ThreadTotals>) {
        for (number, row) in self.places.double_words().chunks_exact(WAYS).enumerate() {
            // Most rows are empty, or have one thread.
            if row.iter().all(|word| word.load(Ordering::Relaxed) == FREE) {
                continue;
            }
            free_repeated(row);
            for (way, word) in row.iter().enumerate() {
                let tid = word.load(Ordering::Acquire);
                if tid != FREE && tid != BUSY {
                    into.extend(self.read_one(number * WAYS + way, word, tid as u32));
                }
            }
        }
    }

    /// Reads a thread; `None` if it has ended, or if it changed during each attempt.
    fn read_one(&self, place: usize, word: &AtomicU64, tid: u32) -> Option<ThreadTotals> {
        (0..TRIES).find_map(|_| {
            let thread = self.kept.get(&(place as u32), 0).ok()?;
            let totals = ThreadTotals::of_living(tid, &thread.0, now_ns());
            totals.filter(|_| word.load(Ordering::Acquire) == tid.into())
        })
    }
}

/// Frees the places of a row whose thread has an earlier place in it, and returns their number.
fn free_repeated(row: &[AtomicU64]) -> usize {
    let mut freed = 0;
    for (way, word) in row.iter().enumerate() {
        let tid = word.load(Ordering::SeqCst);
        if tid == FREE || tid == BUSY {
            continue;
        }
        let is_repeated = row[..way]
            .iter()
            .any(|other| other.load(Ordering::SeqCst) == tid);
        let free = || word.compare_exchange(tid, FREE, Ordering::SeqCst, Ordering::SeqCst);
        freed += usize::from(is_repeated && free().is_ok());
    }
    freed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_the_first_of_its_places() {
        let row = [9, 7, 9, BUSY, 7, BUSY, FREE, 9].map(AtomicU64::new);
        assert_eq!(free_repeated(&row), 3);
        let left = row.each_ref().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(left, [9, 7, FREE, BUSY, FREE, BUSY, FREE, FREE]);
        assert_eq!(free_repeated(&row), 0);
    }
}
