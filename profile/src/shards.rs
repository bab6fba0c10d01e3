//! A map in [`SHARDS`] parts that is shared with views.
//!
//! A view holds the map as it was. When the store changes an entry, it copies only the part that the
//! entry is in, once per view. Numbers that follow each other are in the same part, as they are
//! often given, and changed, at about the same time.

use crate::{FrameId, ProcessId};
use foldhash::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Number of parts.
const SHARDS: usize = 64;

/// So many numbers that follow each other are in one part.
const NEIGHBOURS: u32 = 32;

/// A number that entries are found by.
pub(crate) trait Number: Copy + Eq + Hash {
    fn number(self) -> u32;
}

impl Number for FrameId {
    fn number(self) -> u32 {
        self.0
    }
}

impl Number for ProcessId {
    fn number(self) -> u32 {
        self.0
    }
}

/// A map whose clones share all parts that neither of them has changed since.
#[derive(Debug, Clone)]
pub(crate) struct Shards<K, V> {
    shards: Arc<[Arc<HashMap<K, V>>]>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Arc::default()).collect(),
            len: 0,
        }
    }
}

impl<K: Number, V> Shards<K, V> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.shards[shard_of(key)].get(&key)
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let all = self.shards.iter().flat_map(|shard| shard.iter());
        all.map(|(key, value)| (*key, value))
    }
}

impl<K: Number, V: Clone> Shards<K, V> {
    /// Stores an entry, in place of the one that the key had.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let before = self.write(key).insert(key, value);
        self.len += usize::from(before.is_none());
    }

    /// Returns an entry for writing.
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // Nothing is copied for a key that is not there.
        self.get(key)?;
        self.write(key).get_mut(&key)
    }

    /// Returns an entry for writing; if there is none, it is made by `new`.
    pub(crate) fn get_or_insert_with(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.get(key).is_none() {
            self.len += 1;
        }
        self.write(key).entry(key).or_insert_with(new)
    }

    /// Removes an entry and returns it.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        self.get(key)?;
        self.len -= 1;
        self.write(key).remove(&key)
    }

    /// Frees the memory of what was removed.
    pub(crate) fn shrink(&mut self) {
        for shard in Arc::make_mut(&mut self.shards) {
            if shard.capacity() > shard.len() * 2 {
                let shard = Arc::make_mut(shard);
                shard.shrink_to(shard.len() * 2);
            }
        }
    }

    fn write(&mut self, key: K) -> &mut HashMap<K, V> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[shard_of(key)])
    }
}

impl<K: Number, V: Clone> FromIterator<(K, V)> for Shards<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

fn shard_of(key: impl Number) -> usize {
    (key.number() / NEIGHBOURS) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::HashMapExt as _;
    use test_support::Random;

    #[test]
    fn a_map_and_its_clones_are_what_they_were() {
        let mut random = Random::new(1);
        let mut map: Shards<FrameId, u64> = Shards::default();
        let mut same: HashMap<FrameId, u64> = HashMap::new();
        let mut clones = Vec::new();
        for _ in 0..30 {
            for _ in 0..300 {
                let (key, value) = (FrameId(random.below(5000) as u32), random.number());
                match random.below(5) {
                    0 => assert_eq!(map.remove(key), same.remove(&key)),
                    1 => assert_eq!(map.get_mut(key), same.get_mut(&key)),
                    2 => {
                        let entry = map.get_or_insert_with(key, || value);
                        assert_eq!(entry, same.entry(key).or_insert(value));
                    }
                    _ => {
                        map.insert(key, value);
                        same.insert(key, value);
                    }
                }
            }
            map.shrink();
            clones.push((map.clone(), same.clone()));
        }
        for (map, same) in clones {
            assert_eq!(map.len(), same.len());
            let all: HashMap<FrameId, u64> = map.iter().map(|(key, value)| (key, *value)).collect();
            assert_eq!(all, same);
        }
    }

    #[test]
    fn writing_copies_one_part() {
        let mut map: Shards<ProcessId, u32> = Shards::default();
        (0..10_000).for_each(|n| map.insert(ProcessId(n), n));
        let view = map.clone();
        *map.get_mut(ProcessId(77)).unwrap() = 1;
        assert_eq!(map.get_mut(ProcessId(99_999)), None);
        let shared = map.shards.iter().zip(&*view.shards);
        let copied = shared.filter(|(ours, its)| !Arc::ptr_eq(ours, its));
        assert_eq!(copied.count(), 1);
        assert_eq!(view.get(ProcessId(77)), Some(&77));
    }
}
