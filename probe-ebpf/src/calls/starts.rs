//! The table of the calls under way: when each of them began.
//!
//! Each timed call needs two operations, at its beginning and at its end. With the kernel's hash
//! maps these are three calls of helpers that take locks, some 400 ns together on kernels that
//! guard each return against speculation. This table takes a tenth of that. A call never leaves
//! it while its bucket has room, and what an earlier probe has left needs no removal.
//!
//! The key of a call is a hash. Of [`STARTS_MAX`] calls under way, two have the same key in one of
//! 10^10 tables. Its upper bits choose a bucket of eight places, in any of which the call may be.

use crate::atomic::{exchange_if, load, store};

/// Maximum number of calls under way in all probed functions together. In a full bucket, a new
/// call replaces the one that began first, which then counts as not returned.
pub const STARTS_MAX: usize = BUCKETS * WAYS;

/// Number of buckets; a power of two.
pub const BUCKETS: usize = 4096;

/// Number of places in one bucket.
pub const WAYS: usize = 8;

/// In place of a key: the place is free. No call has this key.
const FREE: u64 = 0;

/// In place of a key: the place is being written. No call has this key.
const BUSY: u64 = 1;

/// A bucket of the table. It begins as zeros: all places are free.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Bucket {
    /// The key of the call at each place.
    pub keys: [u64; WAYS],
    /// When the call at each place began.
    pub start_ns: [u64; WAYS],
}

/// Returns the key of a call. `task` is the thread or goroutine that makes it, `place` is where
/// its return address is, and `probe` identifies the probe of the function.
#[inline(always)]
pub const fn key(task: u64, place: u64, probe: u64) -> u64 {
    // Odd numbers without a pattern: from the fractional parts of the golden ratio and of the
    // square roots of 3 and 5. Each multiplication carries upwards, each shift downwards.
    let mut key =
        (task ^ probe.wrapping_mul(0xbb67_ae85_84ca_a73b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key ^= key >> 32;
    key = (key ^ place).wrapping_mul(0x3c6e_f372_fe94_f82b);
    key ^= key >> 29;
    key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if key <= BUSY { key + 2 } else { key }
}

/// Returns how far `here` is from `there`. In BPF, this subtraction is the only arithmetic that
/// may turn an address into a number. If `there` never changes, the number identifies `here`.
#[inline(always)]
pub fn difference<T, U>(here: *const T, there: *const U) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut difference = here as u64;
        // SAFETY: one subtraction.
        unsafe {
            core::arch::asm!("{0} -= {1}", inout(reg) difference, in(reg) there);
        }
        difference
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        (here as u64).wrapping_sub(there as u64)
    }
}

/// Returns the number of the bucket that a call belongs to.
#[inline(always)]
pub const fn bucket_of(key: u64) -> u32 {
    (key >> (64 - BUCKETS.ilog2())) as u32
}

/// Keeps a call. `now_ns` is called last, so that the work here does not count as part of the
/// call. An entry with the same key is of a call that never ended, and is overwritten.
///
/// # Safety
///
/// `bucket` must be valid.
#[inline(always)]
pub unsafe fn keep(bucket: *mut Bucket, key: u64, now_ns: impl FnOnce() -> u64) {
    // SAFETY: the caller guarantees the bucket; each place is inside of it.
    unsafe {
        let keys = &raw mut (*bucket).keys as *mut u64;
        let starts = &raw mut (*bucket).start_ns as *mut u64;
        let Some(place) = find(keys, key).or_else(|| claim(keys, starts)) else {
            return;
        };
        // The hit that claimed the entry is the only one that writes to it until the key is there.
        store(starts.add(place), now_ns());
        store(keys.add(place), key);
    }
}

/// Removes a call and returns when it began. Returns None if it is not in the table.
///
/// # Safety
///
/// `bucket` must be valid.
#[inline(always)]
pub unsafe fn take(bucket: *mut Bucket, key: u64) -> Option<u64> {
    // SAFETY: as above.
    unsafe {
        let keys = &raw mut (*bucket).keys as *mut u64;
        let place = find(keys, key)?;
        let starts = &raw mut (*bucket).start_ns as *mut u64;
        let start_ns = load(starts.add(place));
        // Another call may have replaced it.
        (exchange_if(keys.add(place), key, FREE) == key).then_some(start_ns)
    }
}

/// Returns the place of a key. Only the task that made the call ever looks for its key.
#[inline(always)]
unsafe fn find(keys: *mut u64, key: u64) -> Option<usize> {
    let mut place = 0;
    while place < WAYS {
        // SAFETY: inside of the bucket.
        if unsafe { load(keys.add(place)) } == key {
            return Some(place);
        }
        place += 1;
    }
    None
}

/// Marks a place as busy: a free one, else that of the call that began first. Returns None if
/// another program was faster there.
#[inline(always)]
unsafe fn claim(keys: *mut u64, starts: *mut u64) -> Option<usize> {
    let mut place = 0;
    while place < WAYS {
        // SAFETY: inside of the bucket.
        let is_claimed = unsafe {
            load(keys.add(place)) == FREE && exchange_if(keys.add(place), FREE, BUSY) == FREE
        };
        if is_claimed {
            return Some(place);
        }
        place += 1;
    }
    let (mut oldest, mut oldest_ns) = (0, u64::MAX);
    let mut place = 0;
    while place < WAYS {
        // SAFETY: inside of the bucket.
        let start_ns = unsafe { load(starts.add(place)) };
        if start_ns < oldest_ns {
            (oldest, oldest_ns) = (place, start_ns);
        }
        place += 1;
    }
    let oldest = oldest & (WAYS - 1);
    // SAFETY: as above.
    let is_claimed = unsafe {
        let key = load(keys.add(oldest));
        key != BUSY && exchange_if(keys.add(oldest), key, BUSY) == key
    };
    is_claimed.then_some(oldest)
}

const _: () = assert!(BUCKETS.is_power_of_two() && WAYS.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};
    use std::vec;
    use std::vec::Vec;

    const EMPTY: Bucket = Bucket {
        keys: [FREE; WAYS],
        start_ns: [0; WAYS],
    };

    fn keep_at(table: &mut [Bucket], key: u64, ns: u64) {
        // SAFETY: an element of the slice.
        unsafe { keep(&mut table[bucket_of(key) as usize], key, || ns) };
    }

    fn take_from(table: &mut [Bucket], key: u64) -> Option<u64> {
        // SAFETY: as above.
        unsafe { take(&mut table[bucket_of(key) as usize], key) }
    }

    #[test]
    fn calls_are_found_once_and_by_nobody_else() {
        let mut table = vec![EMPTY; BUCKETS];
        let mut model = HashMap::new();
        // Nested calls of some threads: their places lie close to each other.
        for round in 0..crate::rounds(20_000) {
            let key = key(
                0xffff_c900_0001_3f58 + ((round % 7) << 14),
                0x7ffd_0000_1000 - (round / 7 % 97) * 48,
                round % 3,
            );
            match model.remove(&key) {
                Some(ns) => assert_eq!(take_from(&mut table, key), Some(ns)),
                None => {
                    assert_eq!(take_from(&mut table, key), None);
                    keep_at(&mut table, key, round);
                    model.insert(key, round);
                }
            }
        }
        assert!(model.len() > 100, "{}", model.len());
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand steps, each interpreted")]
    fn keys_differ_where_calls_do() {
        let mut keys = BTreeSet::new();
        for task in 0..32u64 {
            for place in 0..512u64 {
                for probe in 0..8u64 {
                    keys.insert(key(
                        0xffff_c900_0000_3f58 + (task << 14),
                        0x7ffd_0000_0000 + place * 8,
                        probe << 32,
                    ));
                }
            }
        }
        assert_eq!(keys.len(), 32 * 512 * 8);
        // The keys are spread evenly: a bucket has 32 of them on average.
        let mut counts = vec![0u32; BUCKETS];
        keys.iter()
            .for_each(|key| counts[bucket_of(*key) as usize] += 1);
        assert!(counts.iter().all(|count| (5..80).contains(count)));
        assert!(keys.iter().all(|key| *key > BUSY));
    }

    #[test]
    fn a_call_that_never_ended_makes_room_for_the_next_at_its_place() {
        let mut table = vec![EMPTY; BUCKETS];
        let key = key(1, 2, 3);
        keep_at(&mut table, key, 10);
        keep_at(&mut table, key, 20);
        assert_eq!(take_from(&mut table, key), Some(20));
        assert_eq!(take_from(&mut table, key), None);
    }

    #[test]
    fn the_oldest_call_is_pushed_out_of_a_full_bucket() {
        let mut table = vec![EMPTY; BUCKETS];
        let in_first = |key: &u64| bucket_of(*key) == 0;
        let keys: Vec<u64> = (0..)
            .map(|place| key(5, place, 0))
            .filter(in_first)
            .take(WAYS + 2)
            .collect();
        for (ns, key) in (0..).zip(&keys) {
            keep_at(&mut table, *key, ns);
        }
        let found: Vec<_> = keys.iter().map(|key| take_from(&mut table, *key)).collect();
        assert_eq!(found[..2], [None, None]);
        assert_eq!(
            found[2..],
            (2..WAYS as u64 + 2).map(Some).collect::<Vec<_>>()
        );
    }

    #[test]
    fn threads_get_their_own_times_also_where_there_is_no_room() {
        struct Shared(*mut Bucket);
        // SAFETY: all access is by the functions above, which are made for it.
        unsafe impl Sync for Shared {}
        let mut bucket = EMPTY;
        let shared = Shared(&raw mut bucket);
        let shared = &shared;
        let found: u64 = std::thread::scope(|scope| {
            let threads = (1..=4u64).map(|thread| {
                scope.spawn(move || {
                    let mut found = 0;
                    for round in 0..crate::rounds(20_000) {
                        // Each thread has four calls at a time, all together twice the room.
                        let keys: [u64; 4] =
                            std::array::from_fn(|call| (thread << 8 | call as u64) << 1 | 4);
                        for key in keys {
                            // SAFETY: the bucket outlives the scope.
                            unsafe { keep(shared.0, key, || key << 32 | round) };
                        }
                        for key in keys {
                            // SAFETY: as above.
                            if let Some(ns) = unsafe { take(shared.0, key) } {
                                assert_eq!(ns, key << 32 | round);
                                found += 1;
                            }
                        }
                    }
                    found
                })
            });
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert!(found > 0);
        assert!(bucket.keys.iter().all(|key| *key != BUSY));
    }
}
