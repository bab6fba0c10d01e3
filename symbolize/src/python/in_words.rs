//! Memory for tests: words at addresses, with zeros between them.

use super::Version;
use super::memory::Memory;
use crate::Reason;
use std::collections::HashMap;

/// The version whose structures the tests use.
pub const VERSION: Version = Version {
    major: 3,
    minor: 12,
};

/// Memory with these words; if two have the same address, the later one counts.
pub fn memory(words: &[(u64, u64)]) -> impl Memory {
    let words: HashMap<u64, u64> = words.iter().copied().collect();
    move |address: u64, length: u32| -> Result<Vec<u8>, Reason> {
        let word = |at: u64| words.get(&(address + at)).copied().unwrap_or(0);
        let all = (0..u64::from(length))
            .step_by(8)
            .flat_map(|at| word(at).to_le_bytes());
        Ok(all.take(length as usize).collect())
    }
}

/// The words of a string of up to 16 ASCII characters at this address.
pub fn text(at: u64, text: &str) -> [(u64, u64); 5] {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    let halves = bytes.as_chunks::<8>().0;
    let state = 1 << 2 | 1 << 5 | 1 << 6;
    [
        (at, 1),
        (at + 16, text.len() as u64),
        (at + 32, state),
        (at + 40, u64::from_le_bytes(halves[0])),
        (at + 48, u64::from_le_bytes(halves[1])),
    ]
}
