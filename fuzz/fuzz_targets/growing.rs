//! A file in memory that grows.

use std::fs::File;
use std::io::Write;

use rustix::fs::{MemfdFlags, memfd_create};

pub struct Growing(File);

impl Growing {
    pub fn new(bytes: &[u8]) -> Growing {
        let file = memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memfd");
        let mut growing = Growing(file.into());
        growing.append(bytes);
        growing
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("memory can be written");
    }

    pub fn reader(&self) -> File {
        self.0.try_clone().expect("a descriptor")
    }
}

/// Addresses to ask for: some that the input names, and the ends.
pub fn addresses(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8).take(64).map(|word| {
        let word: [u8; 8] = word.try_into().unwrap_or_default();
        let as_text = std::str::from_utf8(&word).ok();
        let digits = as_text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        digits.unwrap_or(u64::from_le_bytes(word))
    });
    words.chain([0, 0x1000, 0x1010, 0x2000, u64::MAX])
}
