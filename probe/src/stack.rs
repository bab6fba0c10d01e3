//! A copy of a thread's stack, complete or in pieces.

use probe_ebpf::Registers;
use probe_ebpf::registers::SCRATCH_REGISTERS;

/// A copy of a thread's stack, or of a part of it; it belongs to the sample of the same time and
/// CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCopy {
    /// Time of the sample.
    pub time_ns: u64,
    /// CPU of the sample.
    pub cpu: u32,
    /// The main registers of the thread.
    pub registers: Registers,
    /// The other registers that a walk may need, in the walk's order.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// The copied bytes.
    pub bytes: StackBytes,
}

/// The copied bytes of a stack. For a long one the middle is missing: what a walk needs is near the
/// stack pointer and near the thread's first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackBytes {
    /// The pieces by offset, which do not overlap.
    pieces: Vec<Piece>,
    /// The stack may reach up to this offset, copied or not.
    reach: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// Distance of its beginning from the stack pointer.
    offset: u64,
    bytes: Vec<u8>,
}

impl StackBytes {
    /// Makes a copy of one piece. Without a known reach the stack ends where the piece does.
    pub fn new(offset: u64, bytes: &[u8], reach: Option<u64>) -> Self {
        let end = offset.saturating_add(bytes.len() as u64);
        let piece = Piece {
            offset,
            bytes: bytes.to_vec(),
        };
        Self {
            pieces: vec![piece],
            reach: reach.map_or(end, |reach| reach.max(end)),
        }
    }

    /// Whether a piece begins at the stack pointer: otherwise nothing can be walked.
    pub fn has_beginning(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.offset == 0)
    }

    /// Adds pieces of the same stack. A piece that overlaps another one is ignored; this does not
    /// happen in valid input.
    pub fn add(&mut self, other: StackBytes) {
        for piece in other.pieces {
            let place = self.pieces.partition_point(|p| p.offset <= piece.offset);
            let is_behind = place == 0 || self.pieces[place - 1].end() <= piece.offset;
            let next = self.pieces.get(place);
            if is_behind && next.is_none_or(|next| piece.end() <= next.offset) {
                self.pieces.insert(place, piece);
            }
        }
        self.reach = other.reach.max(self.end());
    }

    /// Returns the word at an offset from the stack pointer.
    pub fn word(&self, offset: u64) -> Option<u64> {
        let here = self.from(offset)?;
        let mut word = [0; 8];
        let length = here.len().min(8);
        word[..length].copy_from_slice(&here[..length]);
        if length < 8 {
            // The stack is not aligned, and the word begins at the end of a piece.
            let rest = self.from(offset.checked_add(length as u64)?)?;
            word[length..].copy_from_slice(rest.get(..8 - length)?);
        }
        Some(u64::from_le_bytes(word))
    }

    /// Whether the stack may have something at this offset that was not copied.
    pub fn lacks(&self, offset: u64) -> bool {
        offset < self.reach
    }

    /// Returns the offset from which on a stack of one piece is the same as `now`, to its end;
    /// `u64::MAX` if not even its end is. If `now` has less than was copied and its last page is
    /// the same, the rest is assumed to be the same as well.
    pub fn same_from(&self, now: &[u8]) -> u64 {
        const PAGE: usize = 4096;
        let Some(piece) = self.pieces.first().filter(|piece| piece.offset == 0) else {
            return u64::MAX;
        };
        let length = piece.bytes.len().min(now.len());
        let pairs = piece.bytes[..length].iter().zip(&now[..length]);
        let same = pairs.rev().take_while(|(then, now)| then == now).count();
        let is_enough = length == piece.bytes.len() || same >= PAGE.min(length);
        if is_enough && same > 0 {
            (length - same) as u64
        } else {
            u64::MAX
        }
    }

    /// Size of the copies in memory, in bytes.
    pub fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    fn end(&self) -> u64 {
        self.pieces.last().map_or(0, Piece::end)
    }

    fn from(&self, offset: u64) -> Option<&[u8]> {
        let behind = self.pieces.partition_point(|piece| piece.offset <= offset);
        let piece = &self.pieces[behind.checked_sub(1)?];
        let bytes = piece.bytes.get((offset - piece.offset) as usize..)?;
        (!bytes.is_empty()).then_some(bytes)
    }
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

/// Clears the memory, which may contain private data.
impl Drop for Piece {
    fn drop(&mut self) {
        self.bytes.fill(0);
        std::hint::black_box(&self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, content: u8) -> StackBytes {
        StackBytes::new(offset, &[content; 16], Some(96))
    }

    #[test]
    fn pieces_become_one_stack_with_a_hole() {
        let mut whole = piece(0, 1);
        whole.add(piece(64, 5));
        whole.add(piece(16, 2));
        assert_eq!(whole.size(), 48);
        assert_eq!(whole.word(8), Some(0x0101_0101_0101_0101));
        assert_eq!(whole.word(12), Some(0x0202_0202_0101_0101));
        assert_eq!(whole.word(24), Some(0x0202_0202_0202_0202));
        assert_eq!((whole.word(28), whole.word(56)), (None, None));
        assert_eq!(whole.word(64), Some(0x0505_0505_0505_0505));
        assert_eq!((whole.word(73), whole.word(u64::MAX)), (None, None));
        assert!(whole.lacks(40) && whole.lacks(80) && !whole.lacks(96));
    }

    #[test]
    fn what_overlaps_is_left_away() {
        let mut whole = piece(16, 1);
        assert!(!whole.has_beginning());
        for offset in [1, 8, 16, 31] {
            whole.add(piece(offset, 2));
        }
        assert_eq!((whole.size(), whole.word(16)), (16, piece(16, 1).word(16)));
        whole.add(piece(0, 3));
        whole.add(piece(32, 3));
        assert_eq!(whole.size(), 48);
        assert!(whole.has_beginning());
    }

    #[test]
    fn a_stack_is_the_same_from_where_it_has_not_changed() {
        let same_from = |then: &[u8], now: &[u8]| StackBytes::new(0, then, None).same_from(now);
        assert_eq!(same_from(b"abcdef", b"abcdef"), 0);
        assert_eq!(same_from(b"abcdef", b"abXdef"), 3);
        assert_eq!(same_from(b"abcdef", b"abcdeX"), u64::MAX);
        let then = [7; 3 * 4096];
        let mut now = [7; 2 * 4096];
        assert_eq!(same_from(&then, &now), 0);
        now[4000] = 0;
        assert_eq!(same_from(&then, &now), 4001);
        now[8000] = 0;
        assert_eq!(same_from(&then, &now), u64::MAX, "the rest may be another");
        assert_eq!(piece(16, 1).same_from(&[1; 16]), u64::MAX);
    }

    #[test]
    fn a_stack_ends_where_its_only_piece_does() {
        let whole = StackBytes::new(0, &[1; 16], None);
        assert!(!whole.lacks(16));
        assert!(StackBytes::new(0, &[1; 16], Some(u64::MAX)).lacks(1 << 40));
    }
}
