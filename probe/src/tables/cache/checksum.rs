//! A 64-bit checksum, computed over eight bytes at a time.
//!
//! Each step is a bijection of the state and of the word, so that a change in one word always
//! changes the sum. It protects against broken disks, not against attackers: those are excluded by
//! the permissions of the directory.

/// Odd numbers without pattern, from the golden ratio and from the finalizer
/// of MurmurHash3.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xff51_afd7_ed55_8ccd];

/// Returns the checksum of some bytes.
pub fn of(bytes: &[u8]) -> u64 {
    let mut sum = Running::default();
    sum.add(bytes);
    sum.finish()
}

/// The checksum of bytes that come piece by piece.
#[derive(Debug, Default)]
pub struct Running {
    state: u64,
    /// The bytes after the last whole word.
    rest: [u8; 8],
    length: u64,
}

impl Running {
    /// Adds the next bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        let filled = (self.length % 8) as usize;
        self.length += bytes.len() as u64;
        if filled > 0 {
            let (first, others) = bytes.split_at(bytes.len().min(8 - filled));
            self.rest[filled..filled + first.len()].copy_from_slice(first);
            bytes = others;
            if filled + first.len() < 8 {
                return;
            }
            self.state = step(self.state, u64::from_le_bytes(self.rest));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.state = step(self.state, u64::from_le_bytes(*word));
        }
        self.rest = [0; 8];
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    /// Returns the checksum of all bytes.
    pub fn finish(self) -> u64 {
        step(step(self.state, u64::from_le_bytes(self.rest)), self.length)
    }
}

/// Multiplies twice, because one product does not spread a change of the highest bit, and the next
/// word could undo it.
fn step(state: u64, word: u64) -> u64 {
    let state = (state ^ word).wrapping_mul(FACTORS[0]);
    let state = (state ^ state >> 32).wrapping_mul(FACTORS[1]);
    state ^ state >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_bit_and_every_length_counts() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut sums = HashSet::from([of(&bytes)]);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(sums.insert(of(&changed)), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(sums.insert(of(&bytes[..length])), "length {length}");
        }
        // The shorter ones are tested above.
        let zeros = [0; 64];
        assert!((2..64).all(|length| sums.insert(of(&zeros[..length]))));
    }

    #[test]
    fn pieces_count_as_the_whole() {
        let bytes: Vec<u8> = (0..50).map(|byte| byte * 5).collect();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut sum = Running::default();
                for piece in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                    sum.add(piece);
                }
                assert_eq!(sum.finish(), of(&bytes), "{first} {second}");
            }
        }
    }

    #[test]
    fn order_counts() {
        let (a, b) = ([1_u8; 8], [2_u8; 8]);
        assert_ne!(of(&[a, b].concat()), of(&[b, a].concat()));
    }
}
