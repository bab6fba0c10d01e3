//! The table of frames.
//!
//! A frame's number is held outside: by the selection on the screen, by a
//! request for its name that is under way. So numbers are not given to another
//! frame while there is room: a frame that nothing uses any more is *released*,
//! which means that it can no longer be found by its address, and its number is
//! put at the end of a queue. Only when the table has grown to twice the frames that are in
//! use, or to its share of the memory, is the number at the front of the queue used again, which is the one
//! released longest ago.
//!
//! On a machine whose programs come and go, frames that nothing uses would fill the table up
//! to there. So they are released when the table has doubled, and half of its numbers at most
//! are those of released frames.

use crate::cow;
use crate::hash::Seed;
use crate::index::Index;
use crate::{Ending, Frame, FrameId, FrameKind, ModuleId};
use std::collections::VecDeque;
use std::sync::Arc;

/// The frame that stands for "this sample has no frame at all".
pub(crate) const NO_STACK: FrameId = FrameId(0);

/// The one that stands for stacks of which a filter hides every frame.
pub(crate) const HIDDEN: FrameId = FrameId(1);

/// The one that stands for what is missing of a stack that ended so.
pub(crate) const fn stopped(ending: Ending) -> FrameId {
    FrameId(2 + ending as u32)
}

/// Numbers below are no places in programs.
pub(crate) const RESERVED: u32 = 2 + Ending::ALL.len() as u32;

/// What one frame costs here and in the index, and in the table of names if
/// its name is no other frame's.
const BYTES_PER_FRAME: usize = 160;

/// Below this, saving is not worth the trouble.
const FRAMES_MIN: usize = 4096;

/// A table that is smaller keeps what nothing uses, within its share of the memory.
const SMALL_MAX: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Frames {
    seed: Seed,
    index: Index,
    /// Shared with views.
    frames: Arc<Vec<Frame>>,
    /// Numbers that may be used again, the longest released first.
    released: VecDeque<FrameId>,
    /// Frames that stand for inlined functions and are not in the index.
    inlined: Vec<FrameId>,
    /// How many frames there may be before numbers are used again.
    wanted_max: usize,
    /// What that may grow to while there are frames to release.
    share_max: usize,
}

/// What interning a frame came to.
pub(crate) struct Interned {
    pub(crate) id: FrameId,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
}

impl Frames {
    /// A table that starts to use numbers again at `budget_bytes`.
    pub(crate) fn new(seed: Seed, budget_bytes: usize) -> Self {
        let reserved = Frame {
            module: ModuleId(u32::MAX),
            address: 0,
            kind: FrameKind::User,
        };
        let share_max = (budget_bytes / BYTES_PER_FRAME).max(FRAMES_MIN);
        Self {
            seed,
            index: Index::new(),
            // Not in the index: no sample can name them.
            frames: Arc::new(vec![reserved; RESERVED as usize]),
            released: VecDeque::new(),
            inlined: Vec::new(),
            wanted_max: share_max.min(SMALL_MAX),
            share_max,
        }
    }

    /// How many numbers there are, those of released frames included.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn table(&self) -> &Arc<Vec<Frame>> {
        &self.frames
    }

    /// How many frames are in use: not released, and places in programs.
    pub(crate) fn used(&self) -> usize {
        self.frames.len() - self.released.len() - RESERVED as usize
    }

    /// The frame of a number; of a released one what it was.
    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id.0 as usize).copied()
    }

    /// The number of a frame that is not released.
    pub(crate) fn find(&self, frame: &Frame) -> Option<FrameId> {
        let hash = self.seed.hash_frame(frame);
        let frames = &self.frames;
        let found = self.index.find(hash, |id| frames[id as usize] == *frame);
        found.map(FrameId)
    }

    /// The number of a frame, which is added if it is new.
    pub(crate) fn intern(&mut self, frame: &Frame) -> Interned {
        let hash = self.seed.hash_frame(frame);
        let frames = &self.frames;
        if let Some(id) = self.index.find(hash, |id| frames[id as usize] == *frame) {
            return Interned {
                id: FrameId(id),
                is_new: false,
            };
        }
        let id = self.next_id();
        cow::write(&mut self.frames)[id.0 as usize] = *frame;
        self.index.insert(hash, id.0);
        Interned { id, is_new: true }
    }

    /// A number for a function that occurs inlined in `frame`. No stack holds
    /// it and no address finds it.
    pub(crate) fn add_inlined(&mut self, frame: Frame) -> FrameId {
        let id = self.next_id();
        cow::write(&mut self.frames)[id.0 as usize] = frame;
        self.inlined.push(id);
        id
    }

    /// Whether the table is at its bound and nothing is left to use again: time
    /// to look for frames to release.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= self.wanted_max && self.released.is_empty()
    }

    /// Releases all frames but those that `is_live` keeps; gives those released.
    ///
    /// The next time is when there are twice the frames that are in use now, or as many as
    /// their share of the memory holds. Where little was found there, the bound rises by an
    /// eighth: the frames are all in use then, and looking again at each new one would be in
    /// vain.
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

    /// From now on a released number is used before a new one is made: memory
    /// is short.
    pub(crate) fn stop_growing(&mut self) {
        self.wanted_max = self.wanted_max.min(self.frames.len()).max(FRAMES_MIN);
        self.share_max = self.wanted_max;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + (self.released.capacity() + self.inlined.capacity()) * size_of::<FrameId>()
            + self.index.memory_bytes()
    }

    /// A number for a new frame: one that was released, if the table is at its bound.
    fn next_id(&mut self) -> FrameId {
        if self.frames.len() >= self.wanted_max
            && let Some(id) = self.released.pop_front()
        {
            return id;
        }
        let id = FrameId(self.frames.len() as u32);
        let reserved = self.frames[0];
        cow::grow(&mut self.frames, 1).push(reserved);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    // Those of the last two rounds are in use.
                    let table = Arc::clone(frames.table());
                    let used = |id: FrameId| table[id.0 as usize].address >> 32;
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
