//! Finds where a thread of Python has the address of its own state, so that the kernel side can
//! find it for a thread that has just started and is not in the maps yet.
//!
//! CPython keeps the state of each thread in a variable of the thread (`PyGILState`, and from 3.12
//! on the current state), at the same distance from the thread's `pthread_t` in all threads of a
//! process. The distance is not recorded anywhere: it is found by searching for the states of the
//! known threads.

use std::cmp::Reverse;

use super::memory::Memory;
use super::threads::Thread;

/// Bytes after a `pthread_t` that are searched: all of glibc's `struct pthread`, which contains the
/// first 32 values of `pthread_setspecific`.
const ABOVE: u32 = 2304;

/// Bytes before it that are searched: variables that are declared as thread-local.
const BELOW: u32 = 4096;

/// Maximum number of threads that are searched.
const THREADS_MAX: usize = 8;

const WORD: usize = 8;

/// Returns the distance from a `pthread_t` to the word with the address of the thread's state, if
/// there is one. The distance may be wrong: the BPF program checks that the state it finds there is
/// the current thread's.
///
/// A thread that has ended since the list of threads was read, and one that has just begun, do not
/// have the word: the place is used at which most threads have it, and among several the one at
/// which the fewest have another word. The second kind of variable is empty while a thread does not
/// have the global lock, which does not count.
pub fn find(threads: &[Thread], memory: &impl Memory) -> Option<i64> {
    let threads = &threads[..threads.len().min(THREADS_MAX)];
    let ranges = [(0, ABOVE), (-i64::from(BELOW), BELOW)];
    ranges
        .into_iter()
        .find_map(|(from, bytes)| find_in(threads, from, bytes, memory))
}

/// Searches one range of every thread.
fn find_in(threads: &[Thread], from: i64, bytes: u32, memory: &impl Memory) -> Option<i64> {
    // For each place, how many threads have their own state there, and how many another word.
    let mut votes = vec![(0u32, 0u32); bytes as usize / WORD];
    let range = |thread: &Thread| Some((thread.pthread.checked_add_signed(from)?, bytes));
    memory.announce(&threads.iter().filter_map(range).collect::<Vec<_>>());
    for thread in threads {
        let start = thread.pthread.checked_add_signed(from);
        let words = start
            .and_then(|start| memory.read(start, bytes).ok())
            .unwrap_or_default();
        for ((own, others), word) in votes.iter_mut().zip(words.chunks_exact(WORD)) {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            *own += u32::from(word == thread.state);
            *others += u32::from(word != thread.state && word != 0);
        }
    }
    let found = votes
        .into_iter()
        .enumerate()
        .filter(|(_, (own, _))| *own > 0);
    let (at, _) = found.max_by_key(|(at, (own, others))| (*own, Reverse((*others, *at))))?;
    Some(from + (at * WORD) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    /// Memory of threads whose `pthread_t` are multiples of 64 KiB, with these words.
    fn memory(words: Vec<(u64, u64)>) -> impl Memory {
        move |address: u64, length: u32| {
            let mut bytes = vec![0; length as usize];
            for (at, word) in &words {
                let offset = at.wrapping_sub(address) as usize;
                if offset < bytes.len() {
                    bytes[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            if address < 0x1_0000 {
                Err(Reason::Remote)
            } else {
                Ok(bytes)
            }
        }
    }

    fn thread(pthread: u64, state: u64) -> Thread {
        Thread {
            state,
            pthread,
            tid: None,
        }
    }

    #[test]
    fn the_place_that_most_threads_agree_on_is_found() {
        let threads = [
            thread(0x2_0000, 0x77),
            thread(0x3_0000, 0x88),
            // A thread that has ended: its memory belongs to another thread, or is free.
            thread(0x4_0000, 0x99),
            thread(0, 0xaa),
        ];
        let of_keys = vec![
            // The first thread has its address here by chance.
            (0x2_0010, 0x77),
            (0x3_0010, 0x66),
            (0x2_0310, 0x77),
            (0x3_0310, 0x88),
            (0x4_0310, 0x66),
        ];
        assert_eq!(find(&threads, &memory(of_keys)), Some(0x310));
        // Thread-local variables are before it, and empty without the global lock.
        let of_variable = vec![(0x1_ffe8, 0x77)];
        assert_eq!(find(&threads, &memory(of_variable)), Some(-0x18));
    }

    #[test]
    fn where_no_thread_has_it_there_is_none() {
        let threads = [thread(0x2_0000, 0x77), thread(0x3_0000, 0x88)];
        let words = vec![(0x2_0310, 0x88), (0x3_0310, 0x77)];
        assert_eq!(find(&threads, &memory(words)), None);
        assert_eq!(find(&threads, &memory(Vec::new())), None);
        assert_eq!(find(&[], &memory(Vec::new())), None);
        // No memory can be read there.
        assert_eq!(find(&[thread(0, 0x77)], &memory(Vec::new())), None);
    }
}
