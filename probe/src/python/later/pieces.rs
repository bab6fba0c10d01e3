//! Pieces of a process's memory, as they were at one moment.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Size of a piece.
pub const PAGE: u64 = 4096;

/// The pieces that were read, and the ones that turned out to be missing.
#[derive(Debug, Default)]
pub struct Pieces {
    /// First address, and the bytes; `None` for pieces that cannot be read.
    read: Vec<(u64, Option<Vec<u8>>)>,
    missing: RefCell<BTreeSet<u64>>,
    used: RefCell<BTreeSet<u64>>,
}

impl Pieces {
    /// Makes pieces that begin at these addresses.
    pub fn new(read: impl IntoIterator<Item = (u64, Option<Vec<u8>>)>) -> Self {
        let mut read: Vec<_> = read.into_iter().collect();
        read.sort_by_key(|(start, _)| *start);
        Self {
            read,
            missing: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// Returns the bytes at an address. `None` if they cannot be read, or were not read yet: then
    /// their pages are recorded as missing.
    pub fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let mut filled = 0;
        while filled < N {
            let at = address.checked_add(filled as u64)?;
            let from = self.from(at)?;
            let length = from.len().min(N - filled);
            bytes[filled..filled + length].copy_from_slice(&from[..length]);
            filled += length;
        }
        Some(bytes)
    }

    /// Returns the word at an address.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(u64::from_le_bytes)
    }

    /// Returns the pages that were needed and have not been read.
    pub fn take_missing(&self) -> BTreeSet<u64> {
        self.missing.take()
    }

    /// Returns the pages that were needed and have been read.
    pub fn take_used(&self) -> BTreeSet<u64> {
        self.used.take()
    }

    /// Returns what was read from an address on, at least a byte.
    fn from(&self, address: u64) -> Option<&[u8]> {
        let behind = self.read.partition_point(|(start, _)| *start <= address);
        let known = behind.checked_sub(1).and_then(|at| self.read.get(at));
        let page = address & !(PAGE - 1);
        match known {
            Some((start, Some(bytes))) if address - start < bytes.len() as u64 => {
                self.used.borrow_mut().insert(page);
                bytes.get((address - start) as usize..)
            }
            Some((start, None)) if *start == page => None,
            _ => {
                self.missing.borrow_mut().insert(page);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_two_pieces_is_put_together_and_what_is_in_none_is_missing() {
        let page = |content| Some(vec![content; PAGE as usize]);
        let pieces = Pieces::new([(2 * PAGE, page(2)), (PAGE, page(1)), (5 * PAGE, None)]);
        let word = pieces.bytes::<4>(2 * PAGE - 2);
        assert_eq!(word, Some([1, 1, 2, 2]));
        assert_eq!(
            pieces.take_used().into_iter().collect::<Vec<_>>(),
            [PAGE, 2 * PAGE]
        );
        assert_eq!(pieces.word(5 * PAGE), None);
        assert!(pieces.take_missing().is_empty(), "it cannot be read");
        assert_eq!(pieces.word(3 * PAGE - 4), None);
        assert_eq!(pieces.word(0x12), None);
        assert_eq!(pieces.word(u64::MAX - 3), None);
        let missing = pieces.take_missing();
        assert_eq!(
            missing.into_iter().collect::<Vec<_>>(),
            [0, 3 * PAGE, !(PAGE - 1)]
        );
    }
}
