//! A 64-bit checksum, eight bytes at a time.
//!
//! Each step is a bijection of the state and of the word, so that a change in
//! one word always changes the sum. It protects from broken disks, not from
//! people: those are kept out by the rights of the directory.

/// Odd numbers without pattern, from the golden ratio and from the finalizer
/// of MurmurHash3.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xff51_afd7_ed55_8ccd];

/// The checksum of some bytes.
pub fn of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    let state = words.fold(0, |state, word| step(state, u64::from_le_bytes(*word)));
    step(state, bytes.len() as u64)
}

/// Twice, because one product leaves a change of the highest bit where it is,
/// and the next word could take it back.
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
        // The shorter ones are above.
        let zeros = [0; 64];
        assert!((2..64).all(|length| sums.insert(of(&zeros[..length]))));
    }

    #[test]
    fn order_counts() {
        let (a, b) = ([1_u8; 8], [2_u8; 8]);
        assert_ne!(of(&[a, b].concat()), of(&[b, a].concat()));
    }
}
