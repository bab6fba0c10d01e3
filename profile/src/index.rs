//! A hash index: maps a hash to the numbers of things that are stored elsewhere.
//!
//! The standard map would need the key inside (24 B for a frame, a slice for a stack) although the
//! table next to it holds the very same bytes. Here an entry has eight bytes: the number of the
//! thing and its 32-bit hash. The hash rejects nearly all different things before the thing itself
//! is compared, and the index can grow without computing hashes again. Open addressing, linear
//! probing, at most three quarters full.

const SLOTS_MIN: usize = 64;

/// A map from hashes to numbers; see the module.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    /// Entries `hash << 32 | number + 1`; 0 marks a free slot. The length is a power of two.
    slots: Vec<u64>,
    len: usize,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![0; SLOTS_MIN],
            len: 0,
        }
    }

    /// Returns the number stored under `hash` for which `is_it` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash {
                let number = slot as u32 - 1;
                if is_it(number) {
                    return Some(number);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a number that [`Index::find`] did not find. `number` must be below `u32::MAX`.
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.resize(self.slots.len() * 2);
        }
        self.place(u64::from(hash) << 32 | u64::from(number + 1));
        self.len += 1;
    }

    /// Keeps only the numbers for which `is_live` returns true, and frees the remaining memory.
    ///
    /// Things are removed in bulk only, so there is no removal of a single entry and no tombstone.
    pub(crate) fn retain(&mut self, mut is_live: impl FnMut(u32) -> bool) {
        self.slots
            .iter_mut()
            .filter(|slot| **slot != 0)
            .for_each(|slot| {
                if !is_live(*slot as u32 - 1) {
                    *slot = 0;
                }
            });
        self.len = self.slots.iter().filter(|slot| **slot != 0).count();
        self.resize((self.len * 2).next_power_of_two().max(SLOTS_MIN));
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        old.into_iter()
            .filter(|slot| *slot != 0)
            .for_each(|slot| self.place(slot));
    }

    fn place(&mut self, entry: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (entry >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_told_apart_by_the_caller() {
        let mut index = Index::new();
        for number in 0..1000 {
            index.insert(7, number);
        }
        for number in 0..1000 {
            assert_eq!(index.find(7, |n| n == number), Some(number));
        }
        assert_eq!(index.find(7, |_| false), None);
        assert_eq!(index.find(8, |_| true), None);
    }

    #[test]
    fn retain_drops_the_rest_and_shrinks() {
        let mut index = Index::new();
        for number in 0..10_000u32 {
            index.insert(number.wrapping_mul(0x9e37_79b9), number);
        }
        let before = index.memory_bytes();
        index.retain(|number| number < 100);
        assert!(index.memory_bytes() < before / 20);
        for number in 0..10_000u32 {
            let found = index.find(number.wrapping_mul(0x9e37_79b9), |n| n == number);
            assert_eq!(found, (number < 100).then_some(number));
        }
    }
}
