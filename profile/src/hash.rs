//! The hash that interning uses: a seeded, folded 64x64 to 128 bit multiply.
//!
//! Addresses come from programs that are not trusted, so a fixed multiplicative hash (as FxHash is)
//! would let a hostile binary choose addresses that all collide. The seed is random for each store,
//! as in the standard library's maps, so an attacker has to guess 64 bits. The multiply itself
//! costs about a nanosecond; SipHash would cost about twenty for a frame. Collisions that happen
//! all the same only cost time: every match is compared in full.

use crate::Frame;
use std::hash::{BuildHasher, RandomState};

/// The random seed of one store's hashes.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    start: u64,
    key: u64,
}

impl Seed {
    /// A seed from the operating system's randomness.
    pub(crate) fn random() -> Self {
        let source = RandomState::new();
        Self {
            start: source.hash_one(0u8),
            key: source.hash_one(1u8) | 1,
        }
    }

    /// Hash of a frame, for [`Index`](crate::index::Index).
    pub(crate) fn hash_frame(&self, frame: &Frame) -> u32 {
        top_half(self.mix(self.start, frame))
    }

    /// Hash of a stack's frames in their order, for [`Index`](crate::index::Index).
    pub(crate) fn hash_stack(&self, frames: &[Frame]) -> u32 {
        let hash = frames
            .iter()
            .fold(self.start, |hash, frame| self.mix(hash, frame));
        top_half(fold(hash ^ frames.len() as u64, self.key))
    }

    /// Hash of frame numbers and of what is outside of them, for [`Index`](crate::index::Index).
    pub(crate) fn hash_words(&self, outside: u32, words: &[u32]) -> u32 {
        let start = self.start ^ u64::from(outside);
        let hash = words
            .iter()
            .fold(start, |hash, word| fold(hash ^ u64::from(*word), self.key));
        top_half(fold(hash ^ words.len() as u64, self.key))
    }

    fn mix(&self, hash: u64, frame: &Frame) -> u64 {
        let place = u64::from(frame.module.0) << 8 | frame.kind as u64;
        fold(hash ^ frame.address, self.key ^ place.rotate_left(20))
    }
}

/// Combines the high and the low half of the product: every bit of both factors reaches every bit
/// of the result's middle.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn top_half(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameKind, ModuleId};
    use std::collections::HashSet;

    fn frame(module: u32, address: u64) -> Frame {
        Frame {
            module: ModuleId(module),
            address,
            kind: FrameKind::User,
        }
    }

    #[test]
    fn neighbouring_addresses_spread_over_the_low_bits() {
        let seed = Seed::random();
        let slots: HashSet<u32> = (0..4096)
            .map(|i| seed.hash_frame(&frame(1, 0x1000 + i * 16)) & 0xffff)
            .collect();
        // 4,096 balls in 65,536 bins leave about 3,970 bins in use.
        assert!(slots.len() > 3700, "{}", slots.len());
    }

    #[test]
    fn the_order_of_frames_matters() {
        let seed = Seed::random();
        let (a, b) = (frame(1, 16), frame(2, 32));
        assert_ne!(seed.hash_stack(&[a, b]), seed.hash_stack(&[b, a]));
        assert_ne!(seed.hash_stack(&[a]), seed.hash_stack(&[a, a]));
    }
}
