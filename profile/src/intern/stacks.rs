//! The table of stacks.
//!
//! A *stack* here is a chain of frame numbers, innermost first. All of them lie
//! one after the other in one arena, so a stack costs its frames and some thirty
//! bytes, whatever its depth, and counting over all of them reads memory in
//! order. Sharing callers in a tree would be smaller still, but a full tree of
//! 100,000 stacks has two million nodes to look up, at seconds per build.
//!
//! A stack counts the kept samples that use it. At zero it is *dead*: still
//! there, and alive again if it comes again, which is likely. When more than
//! half of the arena is dead, [`Stacks::compact`] slides the live ones together.
//! Only samples hold a stack's number, and it does not change as long as one
//! does, so samples need no rewriting.

use crate::growth;
use crate::hash::Seed;
use crate::index::Index;
use crate::{Frame, FrameId};

/// The number of an interned stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackId(pub(crate) u32);

/// Two words precede the frames: the stack's own number and its depth, so that
/// the arena can be walked, and compacted in place, without a second table.
const HEADER: usize = 2;

/// Not worth compacting below this.
const DEAD_WORDS_MIN: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Stacks {
    seed: Seed,
    index: Index,
    arena: Vec<u32>,
    slots: Vec<Slot>,
    /// Numbers without a stack.
    free: Vec<StackId>,
    dead_words: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Of the header, in words.
    offset: u32,
    /// Kept samples with this stack.
    uses: u32,
    /// The innermost frame, once more: half of all questions are for it alone,
    /// and the arena is too large to stay in a cache.
    leaf: FrameId,
}

impl Stacks {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            seed,
            index: Index::new(),
            arena: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            dead_words: 0,
        }
    }

    /// Numbers ever given at the same time: the length of a table by [`StackId`].
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Stacks stored, dead ones included.
    pub(crate) fn stored(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn hash(&self, frames: &[Frame]) -> u32 {
        self.seed.hash_stack(frames)
    }

    /// The stack of these frames, if it is known. `hash` is theirs, and
    /// `frame_is` says whether a number stands for the frame at that depth.
    ///
    /// Looking for the whole stack first saves looking for each frame: nearly
    /// every sample has a stack that was seen before.
    #[inline]
    pub(crate) fn find(
        &self,
        hash: u32,
        depth: usize,
        frame_is: impl Fn(usize, FrameId) -> bool,
    ) -> Option<StackId> {
        let is_it = |number: u32| {
            let stack = self.frames(StackId(number));
            stack.len() == depth
                && stack
                    .iter()
                    .enumerate()
                    .all(|(at, frame)| frame_is(at, FrameId(*frame)))
        };
        self.index.find(hash, is_it).map(StackId)
    }

    /// Stores a stack that [`Stacks::find`] did not find. It is dead until it
    /// is used. `None` if it has no frame, or if the arena is at the end of its
    /// 32-bit offsets.
    pub(crate) fn insert(&mut self, hash: u32, frames: &[FrameId]) -> Option<StackId> {
        let offset = u32::try_from(self.arena.len()).ok()?;
        let words = HEADER + frames.len();
        growth::reserve(&mut self.arena, words);
        let slot = Slot {
            offset,
            uses: 0,
            leaf: frames.first().copied()?,
        };
        let id = if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = slot;
            id
        } else {
            growth::reserve(&mut self.slots, 1);
            self.slots.push(slot);
            StackId(self.slots.len() as u32 - 1)
        };
        self.arena.push(id.0);
        self.arena.push(frames.len() as u32);
        self.arena.extend(frames.iter().map(|frame| frame.0));
        self.dead_words += words;
        self.index.insert(hash, id.0);
        Some(id)
    }

    /// The numbers of its frames, innermost first; never empty.
    #[inline]
    pub(crate) fn frames(&self, id: StackId) -> &[u32] {
        let header = self.slots[id.0 as usize].offset as usize;
        let depth = self.arena[header + 1] as usize;
        &self.arena[header + HEADER..][..depth]
    }

    #[inline]
    pub(crate) fn leaf(&self, id: StackId) -> FrameId {
        self.slots[id.0 as usize].leaf
    }

    pub(crate) fn uses(&self, id: StackId) -> u32 {
        self.slots[id.0 as usize].uses
    }

    #[inline]
    pub(crate) fn add_use(&mut self, id: StackId) {
        if self.slots[id.0 as usize].uses == 0 {
            self.dead_words -= HEADER + self.frames(id).len();
        }
        self.slots[id.0 as usize].uses += 1;
    }

    #[inline]
    pub(crate) fn drop_use(&mut self, id: StackId) {
        self.slots[id.0 as usize].uses -= 1;
        if self.slots[id.0 as usize].uses == 0 {
            self.dead_words += HEADER + self.frames(id).len();
        }
    }

    pub(crate) fn is_half_dead(&self) -> bool {
        self.dead_words > DEAD_WORDS_MIN && self.dead_words * 2 > self.arena.len()
    }

    /// Throws the dead stacks away. Their numbers may be given again.
    pub(crate) fn compact(&mut self) {
        let slots = &self.slots;
        self.index.retain(|id| slots[id as usize].uses > 0);

        let (mut from, mut to) = (0, 0);
        while from < self.arena.len() {
            let id = self.arena[from];
            let words = HEADER + self.arena[from + 1] as usize;
            let slot = &mut self.slots[id as usize];
            if slot.uses > 0 {
                self.arena.copy_within(from..from + words, to);
                slot.offset = to as u32;
                to += words;
            } else {
                self.free.push(StackId(id));
            }
            from += words;
        }
        self.arena.truncate(to);
        self.arena.shrink_to(to + to / 4);
        self.dead_words = 0;
        self.drop_free_tail();
    }

    /// Every stack that is stored, dead ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, &[u32])> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let id = StackId(*self.arena.get(at)?);
            let frames = &self.arena[at + HEADER..][..self.arena[at + 1] as usize];
            at += HEADER + frames.len();
            Some((id, frames))
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.arena.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.free.capacity() * size_of::<StackId>()
            + self.index.memory_bytes()
    }

    /// What [`Stacks::compact`] would give back, roughly.
    pub(crate) fn dead_bytes(&self) -> usize {
        self.dead_words * size_of::<u32>()
    }

    /// Forgets free numbers at the end of the table, so that it shrinks, too.
    fn drop_free_tail(&mut self) {
        self.free.sort_unstable();
        while let Some(last) = self.free.last()
            && last.0 as usize + 1 == self.slots.len()
        {
            self.slots.pop();
            self.free.pop();
        }
        self.slots.shrink_to(self.slots.len() * 5 / 4);
        self.free.shrink_to(self.free.len() * 5 / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of frame numbers that stands for itself.
    fn add(stacks: &mut Stacks, hash: u32, frames: &[u32]) -> StackId {
        let wanted: Vec<FrameId> = frames.iter().map(|f| FrameId(*f)).collect();
        let found = stacks.find(hash, wanted.len(), |at, id| wanted[at] == id);
        let id = found.unwrap_or_else(|| stacks.insert(hash, &wanted).unwrap());
        stacks.add_use(id);
        id
    }

    #[test]
    fn equal_stacks_are_one_even_if_all_hashes_collide() {
        let mut stacks = Stacks::new(Seed::random());
        let a = add(&mut stacks, 1, &[1, 2, 3]);
        let b = add(&mut stacks, 1, &[1, 2]);
        assert_ne!(a, b);
        assert_eq!(add(&mut stacks, 1, &[1, 2, 3]), a);
        assert_eq!(stacks.frames(a), [1, 2, 3]);
        assert_eq!(stacks.leaf(b), FrameId(1));
        assert_eq!((stacks.uses(a), stacks.uses(b)), (2, 1));
    }

    #[test]
    fn compacting_keeps_what_is_used_under_its_number() {
        let mut stacks = Stacks::new(Seed::random());
        let ids: Vec<StackId> = (0..100)
            .map(|i| add(&mut stacks, i, &[i, i + 1, i + 2]))
            .collect();
        for id in ids.iter().filter(|id| id.0 % 3 != 0) {
            stacks.drop_use(*id);
        }
        // Dead, but not gone: number 1 comes back to life.
        assert_eq!(add(&mut stacks, 1, &[1, 2, 3]), ids[1]);
        stacks.compact();
        for id in ids.iter().filter(|id| id.0 % 3 == 0 || id.0 == 1) {
            assert_eq!(stacks.frames(*id), [id.0, id.0 + 1, id.0 + 2]);
            assert_eq!(add(&mut stacks, id.0, &[id.0, id.0 + 1, id.0 + 2]), *id);
        }
        assert_eq!(stacks.stored(), 35);
        assert_eq!(stacks.iter().count(), 35);
        // A freed number is given again.
        let new = add(&mut stacks, 500, &[7]);
        assert!(ids.contains(&new));
        assert_eq!(stacks.frames(new), [7]);
    }
}
