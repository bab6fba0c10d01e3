//! Unpredictable numbers; not for secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A generator of random numbers: splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Makes a generator with an unpredictable seed.
    pub fn new() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    /// Makes a generator that returns the same numbers each time.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number in `low..high`; all are equally likely.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        // The 53 bits of precision that a float between 0 and 1 has.
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low + unit * (high - low)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_their_range_evenly() {
        let mut random = Random::seeded(1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let number = random.between(-1.0, 1.0);
            counts[((number + 1.0) * 5.0) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
        assert_ne!(Random::new().next(), Random::new().next());
    }
}
