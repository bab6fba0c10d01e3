//! The frames by number, as far as views share them.

use crate::pieces::Pieces;
use crate::{Frame, FrameId, FrameKind, ModuleId};

/// What stands for numbers that are not places in programs.
pub(super) const RESERVED_FRAME: Frame = Frame {
    module: ModuleId(u32::MAX),
    address: 0,
    kind: FrameKind::User,
};

/// The frames by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameTable(Pieces<Packed>);

/// A frame in 16 bytes: a [`Frame`] is padded to 24, because of the alignment of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Packed {
    module: ModuleId,
    /// The lower and the upper half.
    address: [u32; 2],
    kind: FrameKind,
}

impl FrameTable {
    /// Number of frame numbers.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the frame with that number; `None` if the number was never used.
    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> Option<Frame> {
        self.0.get(id.0 as usize).map(|packed| packed.frame())
    }

    /// Returns the frame with a number that was used.
    #[inline]
    pub(crate) fn at(&self, id: FrameId) -> Frame {
        self.0[id.0 as usize].frame()
    }

    /// The frames in the order of their numbers.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Frame> {
        self.0.iter().map(|packed| packed.frame())
    }

    /// Whether it begins with all frames of another table.
    pub(crate) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    pub(super) fn push(&mut self, frame: Frame) {
        self.0.push(Packed::new(frame));
    }

    pub(super) fn set(&mut self, id: FrameId, frame: Frame) {
        *self.0.write(id.0 as usize) = Packed::new(frame);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

impl Packed {
    fn new(frame: Frame) -> Self {
        Self {
            module: frame.module,
            address: [frame.address as u32, (frame.address >> 32) as u32],
            kind: frame.kind,
        }
    }

    fn frame(self) -> Frame {
        let [lower, upper] = self.address;
        Frame {
            module: self.module,
            address: u64::from(upper) << 32 | u64::from(lower),
            kind: self.kind,
        }
    }
}

impl Default for Packed {
    fn default() -> Self {
        Self::new(RESERVED_FRAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_what_it_was() {
        let frames = [
            RESERVED_FRAME,
            Frame {
                module: ModuleId(7),
                address: 0xffff_8123_4567_89ab,
                kind: FrameKind::Kernel,
            },
        ];
        let mut table = FrameTable::default();
        for frame in frames {
            table.push(frame);
        }
        assert!(table.iter().eq(frames));
        assert_eq!(table.get(FrameId(1)), Some(frames[1]));
        assert_eq!(table.get(FrameId(2)), None);
        assert_eq!(size_of::<Packed>(), 16);
    }
}
