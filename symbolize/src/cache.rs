//! A cache that drops the least recently used values.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Default number of values. Each may have a file descriptor open, of which a process has 1024 by
/// default.
const ENTRIES_MAX: usize = 256;

/// Default size of all values. The symbols of everything that runs on a desktop need about half of
/// it.
const BYTES_MAX: usize = 64 << 20;

/// Values by key, each computed once. Computing one value does not block the others.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries_max: usize,
    bytes_max: usize,
    state: Mutex<CacheState<K, V>>,
}

#[derive(Debug)]
struct CacheState<K, V> {
    entries: HashMap<K, Entry<V>>,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    slot: Arc<OnceLock<V>>,
    used: u64,
    /// When it was last used.
    used_at: Instant,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Cache<K, V> {
        Cache::new(ENTRIES_MAX, BYTES_MAX)
    }
}

impl<K, V> Cache<K, V> {
    /// An empty cache that holds at most this many values, and this many bytes.
    pub fn new(entries_max: usize, bytes_max: usize) -> Cache<K, V> {
        Cache {
            entries_max,
            bytes_max,
            state: Mutex::new(CacheState {
                entries: HashMap::new(),
                clock: 0,
            }),
        }
    }

    /// The maximum size of all values.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// An empty cache that holds at most this many bytes, and the default number of values.
    pub fn with_bytes_max(bytes_max: usize) -> Cache<K, V> {
        Cache::new(ENTRIES_MAX, bytes_max)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    /// Returns the value if it was computed already.
    pub fn get(&self, key: &K) -> Option<V> {
        let mut state = self.state();
        let now = state.tick();
        let entry = state.entries.get_mut(key)?;
        entry.used = now;
        entry.used_at = Instant::now();
        entry.slot.get().cloned()
    }

    /// Returns the slot of a value, which the caller fills.
    pub fn slot(&self, key: K) -> Arc<OnceLock<V>> {
        let mut state = self.state();
        let used = state.tick();
        let entry = state.entries.entry(key).or_insert_with(|| Entry {
            slot: Arc::default(),
            used,
            used_at: Instant::now(),
        });
        entry.used = used;
        entry.used_at = Instant::now();
        Arc::clone(&entry.slot)
    }

    /// Drops a value.
    pub fn forget(&self, key: &K) {
        self.state().entries.remove(key);
    }

    /// Drops the least recently used values while there are too many, and those of them that have a
    /// size while they are too large together. The most recent one is always kept. Returns the keys
    /// of what was dropped.
    pub fn trim(&self, size: impl Fn(&V) -> usize) -> Vec<K> {
        let mut state = self.state();
        let mut dropped = Vec::new();
        let mut bytes = state.bytes(&size);
        let size_of = |entry: &Entry<V>| entry.slot.get().map_or(0, &size);
        loop {
            let are_too_many = state.entries.len() > self.entries_max;
            if !are_too_many && bytes <= self.bytes_max {
                return dropped;
            }
            let newest = state.entries.values().map(|entry| entry.used).max();
            let may_go = |entry: &Entry<V>| {
                Some(entry.used) != newest && (are_too_many || size_of(entry) > 0)
            };
            let old = state.entries.iter().filter(|(_, entry)| may_go(entry));
            let oldest = old.min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return dropped;
            };
            let entry = state.entries.remove(&key);
            bytes = bytes.saturating_sub(entry.as_ref().map_or(0, size_of));
            dropped.push(key);
        }
    }

    /// Drops the values that were not used for so long. Returns whether none is left.
    pub fn forget_unused(&self, unused_for: Duration) -> bool {
        let mut state = self.state();
        state
            .entries
            .retain(|_, entry| entry.used_at.elapsed() < unused_for);
        state.entries.is_empty()
    }

    /// All values that were computed.
    pub fn values(&self) -> Vec<V> {
        let state = self.state();
        let values = state.entries.values();
        values
            .filter_map(|entry| entry.slot.get().cloned())
            .collect()
    }

    /// Drops all values.
    pub fn clear(&self) {
        self.state().entries.clear();
    }

    /// Sum of `size` over all values.
    pub fn bytes(&self, size: impl Fn(&V) -> usize) -> usize {
        self.state().bytes(&size)
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn state(&self) -> MutexGuard<'_, CacheState<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> CacheState<K, V> {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn bytes(&self, size: &impl Fn(&V) -> usize) -> usize {
        let values = self.entries.values().filter_map(|entry| entry.slot.get());
        values.map(size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_leaves() {
        let cache = Cache::<usize, usize>::default();
        for key in 0..ENTRIES_MAX + 10 {
            cache.slot(key).set(key).unwrap();
            cache.trim(|_| 1);
            assert_eq!(cache.get(&0), Some(0), "used again and again");
        }
        assert_eq!(cache.bytes(|_| 1), ENTRIES_MAX);
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn what_has_no_size_stays_when_others_are_too_large() {
        let cache = Cache::<usize, usize>::new(9, 100);
        for size in [0, 40, 0, 50, 60] {
            let key = cache.values().len();
            cache.slot(key).set(size).unwrap();
        }
        assert_eq!(cache.trim(|size| *size), [1, 3]);
        let mut left = cache.values();
        left.sort_unstable();
        assert_eq!(left, [0, 0, 60]);
        // The last one stays, however large it is.
        cache.slot(9).set(500).unwrap();
        assert_eq!(cache.trim(|size| *size), [4]);
        assert_eq!(cache.get(&9), Some(500));
    }

    #[test]
    fn what_is_unused_for_long_leaves() {
        let cache = Cache::<usize, usize>::default();
        cache.slot(1).set(1).unwrap();
        assert!(!cache.forget_unused(Duration::from_secs(3600)));
        assert_eq!(cache.get(&1), Some(1));
        assert!(cache.forget_unused(Duration::ZERO));
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn bounds_may_be_smaller() {
        let cache = Cache::<usize, usize>::new(3, 100);
        for key in 0..10 {
            cache.slot(key).set(key).unwrap();
            cache.trim(|_| 1);
        }
        let mut values = cache.values();
        values.sort_unstable();
        assert_eq!(values, [7, 8, 9]);
        cache.trim(|_| 50);
        assert_eq!(cache.bytes(|_| 50), 100);
        cache.clear();
        assert_eq!(cache.values(), []);
    }

    #[test]
    fn large_values_leave_too() {
        let cache = Cache::<usize, usize>::default();
        for key in 0..10 {
            cache.slot(key).set(BYTES_MAX / 3).unwrap();
            cache.trim(|&size| size);
        }
        assert_eq!(cache.bytes(|_| 1), 3);
        cache.slot(10).set(BYTES_MAX * 2).unwrap();
        cache.trim(|&size| size);
        assert_eq!(cache.get(&10), Some(BYTES_MAX * 2));
        assert_eq!(cache.bytes(|_| 1), 1);
    }
}
