//! A copy of a thread's stack, whole or in pieces.

use probe_ebpf::Registers;
use probe_ebpf::registers::SCRATCH_REGISTERS;

/// A copy of a thread's stack, or of a part of it, for the sample of the same time
/// and CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCopy {
    pub time_ns: u64,
    pub cpu: u32,
    pub registers: Registers,
    pub scratch: [u64; SCRATCH_REGISTERS],
    pub bytes: StackBytes,
}

/// What was copied of a stack. A long one lacks its middle: what a walk needs is
/// near the stack pointer and near the thread's first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackBytes {
    /// By offset, none overlapping another.
    pieces: Vec<Piece>,
    /// Up to this offset the stack may go on, copied or not.
    reach: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// How far above the stack pointer it begins.
    offset: u64,
    bytes: Vec<u8>,
}

impl StackBytes {
    /// One piece. Without a known reach the stack ends where the piece does.
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

    /// Whether it begins at the stack pointer: otherwise nothing can be walked.
    pub fn has_beginning(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.offset == 0)
    }

    /// Adds pieces of the same stack. One that overlaps what is there is left away:
    /// nobody writes such.
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

    /// The word that begins so far above the stack pointer.
    pub fn word(&self, offset: u64) -> Option<u64> {
        let here = self.from(offset)?;
        let mut word = [0; 8];
        let length = here.len().min(8);
        word[..length].copy_from_slice(&here[..length]);
        if length < 8 {
            // An unaligned stack, at the end of a piece.
            let rest = self.from(offset.checked_add(length as u64)?)?;
            word[length..].copy_from_slice(rest.get(..8 - length)?);
        }
        Some(u64::from_le_bytes(word))
    }

    /// Whether the stack may have something there that was not copied.
    pub fn lacks(&self, offset: u64) -> bool {
        offset < self.reach
    }

    /// From which offset on a stack of one piece is the same as what is there now, to its end;
    /// `u64::MAX` if not even its end is. Where less is there now than was copied, what has the
    /// last page of it the same is taken to be the same in the rest as well.
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

    /// Bytes in memory.
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

/// It may hold what is nobody's business.
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
