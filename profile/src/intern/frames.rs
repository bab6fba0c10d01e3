//! The table of frames.
//!
//! A frame's number is used outside of the table: for the selected line on the screen, in a symbol
//! look-up that is running. So numbers are not given to another frame while there is room. A frame
//! that nothing uses any more is *released*: it can no longer be found by its address, and its
//! number is put at the end of a queue. Only when the table has grown to twice the frames that are
//! in use, or to its share of the memory, is the number at the front of the queue reused, which is
//! the one released longest ago.
//!
//! On a machine whose programs come and go, unused frames would fill the table up to that limit. So
//! they are released when the table has doubled, and at most half of its numbers belong to released
//! frames.

use super::frame_table::{FrameTable, RESERVED_FRAME};
use crate::hash::Seed;
use crate::index::Index;
use crate::{Ending, Frame, FrameId};
use std::collections::VecDeque;

/// The frame that stands for "this sample has no frame at all".
pub(crate) const NO_STACK: FrameId = FrameId(0);

/// The frame that stands for stacks of which a filter hides every frame.
pub(crate) const HIDDEN: FrameId = FrameId(1);

/// The frame that stands for the missing part of a stack that ended this way.
pub(crate) const fn stopped(ending: Ending) -> FrameId {
    FrameId(2 + ending as u32)
}

/// Frame numbers below this one are not places in programs.
pub(crate) const RESERVED: u32 = 2 + Ending::ALL.len() as u32;

/// Memory of one frame here and in the index, and in the table of names if its name is used by no
/// other frame.
const BYTES_PER_FRAME: usize = 160;

/// Smaller tables are never searched for unused frames; it would not save enough.
const FRAMES_MIN: usize = 4096;

/// A smaller table keeps unused frames, within its share of the memory.
const SMALL_MAX: usize = 16_384;

/// All frames, with the numbers that may be reused.
#[derive(Debug)]
pub(crate) struct Frames {
    seed: Seed,
    index: Index,
    /// Frames by number; shared with views.
    frames: FrameTable,
    /// Numbers that may be reused, the longest released first.
    released: VecDeque<FrameId>,
    /// Frames that stand for inlined functions and are not in the index.
    inlined: Vec<FrameId>,
    /// Number of frames at which numbers are reused.
    wanted_max: usize,
    /// Upper limit of `wanted_max` while there are frames to release.
    share_max: usize,
}

/// The result of interning a frame.
pub(crate) struct Interned {
    /// The frame's number.
    pub(crate) id: FrameId,
    /// Whether the frame was added just now.
    pub(crate) is_new: bool,
}

impl Frames {
    /// An empty table that may use `budget_bytes` before it reuses numbers.
    pub(crate) fn new(seed: Seed, budget_bytes: usize) -> Self {
        // Reserved frames are not in the index, as no sample may refer to them.
        let mut frames = FrameTable::default();
        (0..RESERVED).for_each(|_| frames.push(RESERVED_FRAME));
        let share_max = (budget_bytes / BYTES_PER_FRAME).max(FRAMES_MIN);
        Self {
            seed,
            index: Index::new(),
            frames,
            released: VecDeque::new(),
            inlined: Vec::new(),
            wanted_max: share_max.min(SMALL_MAX),
            share_max,
        }
    }

    /// Number of frame numbers, including those of released frames.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The frames by number, for a view to share.
    pub(crate) fn table(&self) -> &FrameTable {
        &self.frames
    }

    /// Number of frames in use: not released, and places in programs.
    pub(crate) fn used(&self) -> usize {
        self.frames.len() - self.released.len() - RESERVED as usize
    }

    /// Returns the frame with that number, also if it was released; `None` if the number was never
    /// used.
    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id)
    }

    /// Returns the number of a frame that is not released.
    pub(crate) fn find(&self, frame: &Frame) -> Option<FrameId> {
        let hash = self.seed.hash_frame(frame);
        let frames = &self.frames;
        let found = self
            .index
            .find(hash, |id| frames.get(FrameId(id)) == Some(*frame));
        found.map(FrameId)
    }

    /// Returns the number of a frame, which is added if it is new.
    pub(crate) fn intern(&mut self, frame: &Frame) -> Interned {
        let hash = self.seed.hash_frame(frame);
        let frames = &self.frames;
        let is_it = |id| frames.get(FrameId(id)) == Some(*frame);
        if let Some(id) = self.index.find(hash, is_it) {
            return Interned {
                id: FrameId(id),
                is_new: false,
            };
        }
        let id = self.next_id();
        self.frames.set(id, *frame);
        self.index.insert(hash, id.0);
        Interned { id, is_new: true }
    }

    /// Returns a new number for a function that occurs inlined in `frame`. It is on no stack and
    /// cannot be found by address.
    pub(crate) fn add_inlined(&mut self, frame: Frame) -> FrameId {
        let id = self.next_id();
        self.frames.set(id, frame);
        self.inlined.push(id);
        id
    }

    /// Whether the table is at its limit and no number can be reused: time to look for frames to
    /// release.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= self.wanted_max && self.released.is_empty()
    }

    /// Releases all frames for which `is_live` returns false, and returns the released ones.
    ///
    /// The next release is due when the table has twice the frames that are in use now, or as many
    /// as its share of the memory holds. If few were released at that limit, the limit rises by an
    /// eighth: nearly all frames are in use then, and searching again for each new frame would be
    /// in vain.
    pub(crate) fn release(&mut self, is_live: impl Fn(FrameId) -> bool) -> Vec<FrameId> {
        let mut gone = Vec::new();
        self.index.retain(|id| {
            let live = is_live(FrameId(id));
            if !live {
                gone.push(FrameId(id));
            }
            live
        });
        self.inlined.retain(|id| {
            let live = is_live(*id);
            if !live {
                gone.push(*id);
            }
            live
        });
        gone.sort_unstable();
        self.released.extend(&gone);
        if self.wanted_max < self.share_max {
            let twice = (self.used() * 2).max(SMALL_MAX).min(self.share_max);
            self.wanted_max = self.wanted_max.max(twice);
        } else if gone.len() < self.wanted_max / 8 {
            self.wanted_max += self.wanted_max / 8;
        }
        gone
    }

    /// Called when memory is short: from now on a released number is reused before a new one is
    /// created.
    pub(crate) fn stop_growing(&mut self) {
        self.wanted_max = self.wanted_max.min(self.frames.len()).max(FRAMES_MIN);
        self.share_max = self.wanted_max;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.frames.memory_bytes()
            + (self.released.capacity() + self.inlined.capacity()) * size_of::<FrameId>()
            + self.index.memory_bytes()
    }

    /// Returns a number for a new frame: a released one if the table is at its limit.
    fn next_id(&mut self) -> FrameId {
        if self.frames.len() >= self.wanted_max
            && let Some(id) = self.released.pop_front()
        {
            return id;
        }
        let id = FrameId(self.frames.len() as u32);
        self.frames.push(RESERVED_FRAME);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameKind, ModuleId};

    fn frame(address: u64) -> Frame {
        Frame {
            module: ModuleId(1),
            address,
            kind: FrameKind::User,
        }
    }

    #[test]
    fn the_same_frame_has_the_same_number() {
        let mut frames = Frames::new(Seed::random(), 0);
        let first = frames.intern(&frame(16)).id;
        let other = frames.intern(&frame(32)).id;
        assert_ne!(first, other);
        assert_ne!(first, NO_STACK);
        let again = frames.intern(&frame(16));
        assert_eq!((again.id, again.is_new), (first, false));
        assert_eq!(frames.get(first), Some(frame(16)));
        assert_eq!(frames.get(FrameId(99)), None);
    }

    #[test]
    fn where_programs_come_and_go_the_table_is_twice_what_is_in_use() {
        let mut frames = Frames::new(Seed::random(), 1 << 30);
        let mut most = 0;
        for round in 0..100 {
            for n in 0..10_000 {
                if frames.is_full() {
                    // Frames of the last two rounds are in use.
                    let table = frames.table().clone();
                    let used = |id| table.get(id).unwrap().address >> 32;
                    frames.release(|id| used(id) + 1 >= round);
                }
                frames.intern(&frame((round << 32) | n));
            }
            most = most.max(frames.len());
        }
        assert!(most <= 40_000 + RESERVED as usize, "{most}");
        assert!(frames.used() <= most);
        let last = frame((99 << 32) | 5);
        assert_eq!(frames.find(&last).and_then(|id| frames.get(id)), Some(last));
    }

    #[test]
    fn numbers_are_used_again_only_at_the_bound_and_oldest_first() {
        let mut frames = Frames::new(Seed::random(), 0);
        for address in 0..100 {
            frames.intern(&frame(address));
        }
        let gone = frames.release(|id| id.0 >= RESERVED + 10);
        assert_eq!(gone.len(), 10);
        assert_eq!(frames.intern(&frame(5000)).id, FrameId(RESERVED + 100));

        while frames.len() < frames.wanted_max {
            let next = frames.len() as u64;
            frames.intern(&frame(10_000 + next));
        }
        assert!(!frames.is_full());
        assert_eq!(frames.intern(&frame(6000)).id, gone[0]);
        assert_eq!(frames.intern(&frame(6001)).id, gone[1]);
    }
}
