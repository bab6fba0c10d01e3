//! When the calls began that are under way: a table of our own.
//!
//! Two operations for each call that is timed. The kernel's hash maps do them behind three
//! calls of helpers with locks, some 400 ns together, where kernels guard each return against
//! speculation; this takes a tenth of that. It also never gives up a call while there is
//! room, and calls of an earlier probe need no looking for: their keys fit nobody.
//!
//! A key is a hash of all of its bits. Two calls of [`STARTS_MAX`] under way have the same once
//! in 10^10 tables. Its upper bits choose a bucket of eight calls, any of which it may be.

use crate::atomic::exchange_if;

/// Calls that are under way in all watched functions together. What is beyond pushes out
/// the one of its bucket that began first, and counts as not returned.
pub const STARTS_MAX: usize = BUCKETS * WAYS;

/// Buckets; a power of two.
pub const BUCKETS: usize = 4096;

/// Calls in one bucket.
pub const WAYS: usize = 8;

/// A key that nobody has: the place is free.
const FREE: u64 = 0;

/// A key that nobody has: somebody is writing there.
const BUSY: u64 = 1;

/// A part of the table. It begins as zeros.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Bucket {
    /// Whose calls they are.
    pub keys: [u64; WAYS],
    /// When they began.
    pub start_ns: [u64; WAYS],
}

/// The key of a call: `task` makes it, a thread or a goroutine, `place` is where its return
/// address is, and `probe` says of which function it is.
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

/// How far one address is from another. In the kernel, no other arithmetic may make a number of
/// an address; where `there` is always the same, the number stands for `here`.
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

/// The number of the bucket in which a call is, or will be.
#[inline(always)]
pub const fn bucket_of(key: u64) -> u32 {
    (key >> (64 - BUCKETS.ilog2())) as u32
}

/// Keeps a call. `now_ns` is asked last, so that the work here is no part of its time. What was
/// kept of the same key is of a call that never ended, and goes.
///
/// # Safety
///
/// `bucket` must be valid.
#[inline(always)]
pub unsafe fn keep(bucket: *mut Bucket, key: u64, now_ns: impl FnOnce() -> u64) {
    // SAFETY: the caller answers for the bucket; each place is inside of it.
    unsafe {
        let keys = &raw mut (*bucket).keys as *mut u64;
        let starts = &raw mut (*bucket).start_ns as *mut u64;
        let Some(place) = find(keys, key).or_else(|| claim(keys, starts)) else {
            return;
        };
        // The hit that claimed the entry is the only one that writes to it until the key is there.
        starts.add(place).write_volatile(now_ns());
        keys.add(place).write_volatile(key);
    }
}

/// Takes a call out of the table, and says when it began. `None` if it is not there.
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
        let start_ns = (&raw const (*bucket).start_ns as *const u64)
            .add(place)
            .read_volatile();
        // Somebody may have pushed it out.
        (exchange_if(keys.add(place), key, FREE) == key).then_some(start_ns)
    }
}

/// Where a key is. Nobody but the task of the call itself looks for it.
#[inline(always)]
unsafe fn find(keys: *mut u64, key: u64) -> Option<usize> {
    let mut place = 0;
    while place < WAYS {
        // SAFETY: inside of the bucket.
        if unsafe { keys.add(place).read_volatile() } == key {
            return Some(place);
        }
        place += 1;
    }
    None
}

/// Makes a place busy: a free one, else that of the call that began first. `None` if somebody
/// else was faster there.
#[inline(always)]
unsafe fn claim(keys: *mut u64, starts: *const u64) -> Option<usize> {
    let mut place = 0;
    while place < WAYS {
        // SAFETY: inside of the bucket.
        let is_claimed = unsafe {
            keys.add(place).read_volatile() == FREE
                && exchange_if(keys.add(place), FREE, BUSY) == FREE
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
        let start_ns = unsafe { starts.add(place).read_volatile() };
        if start_ns < oldest_ns {
            (oldest, oldest_ns) = (place, start_ns);
        }
        place += 1;
    }
    let oldest = oldest & (WAYS - 1);
    // SAFETY: as above.
    let is_claimed = unsafe {
        let key = keys.add(oldest).read_volatile();
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
        // Calls within calls of some threads: their places lie close to each other.
        for round in 0..20_000u64 {
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
        // They lie evenly: a bucket has 32 on average.
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
                    for round in 0..20_000u64 {
                        // Each has four calls at a time, twice as many as there is room for.
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
