//! A hasher for short keys that need no protection against chosen keys: our own numbers, and names
//! of a file that can only slow down its own look-ups.

use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type FastState = BuildHasherDefault<FastHasher>;

/// Multiplies and rotates word by word, like rustc's hasher.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FastHasher(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl FastHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.add(u64::from_le_bytes(*w)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ bytes.len() as u64);
    }

    fn write_u32(&mut self, word: u32) {
        self.add(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    /// The hash table uses the lowest bits, which in a product do not depend on the highest bits of
    /// the factors.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
