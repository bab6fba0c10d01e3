//! The table of stacks.
//!
//! A *stack* here is a chain of frame numbers, innermost first. All stacks lie one after the other
//! in one arena, so a stack costs its frames and some thirty bytes, whatever its depth, and
//! counting over all of them reads memory in order. Sharing callers in a tree would be smaller
//! still, but a full tree of 100,000 stacks has two million nodes to look up, which takes seconds
//! to build.
//!
//! Each stack counts the kept samples that use it. At zero it is *dead*: still stored, and alive
//! again if it is sampled again, which is likely. When more than half of the arena is dead,
//! [`Stacks::compact`] moves the live ones together. Only samples refer to a stack's number, and it
//! does not change as long as one does, so samples need no rewriting.
//!
//! The arena and the table of numbers are shared with views.

use super::arena::{Arena, CHUNK_WORDS, RunStart};
use crate::cow;
use crate::growth;
use crate::hash::Seed;
use crate::index::Index;
use crate::{Frame, FrameId};
use std::ops::Deref;
use std::sync::Arc;

/// Maximum depth of a stack that is kept whole: far more than any sampler walks, and a limit for
/// files that are not trusted.
pub const STACK_DEPTH_MAX: usize = 4096;

/// The number of an interned stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StackId(pub(crate) u32);

/// Number of words before the frames: the stack's own number and its depth, so that the arena can
/// be walked, and compacted, without a second table.
const HEADER: usize = 2;

const _: () = assert!(STACK_DEPTH_MAX + HEADER <= CHUNK_WORDS);

/// Dead words below which compacting is not worthwhile.
const DEAD_WORDS_MIN: usize = 16 * 1024;

/// The table of stacks: a part that is shared with views, and a part that only the store has.
#[derive(Debug)]
pub(crate) struct Stacks {
    seed: Seed,
    index: Index,
    table: StackTable,
    /// Number of kept samples with each stack.
    uses: Vec<u32>,
    /// Free stack numbers.
    free: Vec<StackId>,
    dead_words: usize,
    /// Serial of the next new stack.
    serial: u32,
}

/// The part of the table that is shared with views.
#[derive(Debug, Clone, Default)]
pub(crate) struct StackTable {
    arena: Arena,
    slots: Arc<Vec<Slot>>,
}

/// The entry of a stack number. A free number keeps the entry of its last stack.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Position of the header.
    place: RunStart,
    /// The innermost frame, stored twice: half of all look-ups need only it, and the arena is too
    /// large to stay in a cache.
    leaf: FrameId,
    /// Distinguishes a stack from a later one with the same number.
    serial: u32,
}

impl StackTable {
    /// Length of a table indexed by [`StackId`]: the highest number ever in use, plus one.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the frame numbers of a stack, innermost first; never empty.
    #[inline]
    pub(crate) fn frames(&self, id: StackId) -> &[u32] {
        let words = self.arena.at(self.slots[id.0 as usize].place);
        &words[HEADER..][..words[1] as usize]
    }

    /// The innermost frame of a stack.
    #[inline]
    pub(crate) fn leaf(&self, id: StackId) -> FrameId {
        self.slots[id.0 as usize].leaf
    }

    /// Returns the serial of a stack: the same number and serial stand for the same frames, in
    /// every view.
    pub(crate) fn serial(&self, id: StackId) -> u32 {
        self.slots[id.0 as usize].serial
    }

    /// Iterates over all stored stacks, including dead ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, &[u32])> {
        self.arena.chunks().flat_map(stacks_in)
    }
}

impl Deref for Stacks {
    type Target = StackTable;

    fn deref(&self) -> &StackTable {
        &self.table
    }
}

impl Stacks {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            seed,
            index: Index::new(),
            table: StackTable::default(),
            uses: Vec::new(),
            free: Vec::new(),
            dead_words: 0,
            serial: 0,
        }
    }

    pub(crate) fn table(&self) -> &StackTable {
        &self.table
    }

    /// Number of stored stacks, including dead ones.
    pub(crate) fn stored(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn hash(&self, frames: &[Frame]) -> u32 {
        self.seed.hash_stack(frames)
    }

    /// Returns the stack with these frames, if it is stored. `hash` is their hash, and `frame_is`
    /// says whether a number stands for the frame at that depth.
    ///
    /// Looking up the whole stack first saves looking up each frame: nearly every sample has a
    /// stack that was seen before.
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

    /// Stores a stack that [`Stacks::find`] did not find. It is dead until [`Stacks::add_use`].
    /// `None` if it has no frame, or if the arena is full.
    pub(crate) fn insert(&mut self, hash: u32, frames: &[FrameId]) -> Option<StackId> {
        let leaf = frames.first().copied()?;
        let id = self
            .free
            .last()
            .copied()
            .unwrap_or(StackId(self.slots.len() as u32));
        let numbers: Vec<u32> = frames.iter().map(|frame| frame.0).collect();
        let header = [id.0, frames.len() as u32];
        let slot = Slot {
            place: self.table.arena.push(&[&header, &numbers])?,
            leaf,
            serial: self.serial,
        };
        self.serial = self.serial.wrapping_add(1);
        if self.free.pop().is_some() {
            cow::write(&mut self.table.slots)[id.0 as usize] = slot;
            self.uses[id.0 as usize] = 0;
        } else {
            cow::grow(&mut self.table.slots, 1).push(slot);
            growth::reserve(&mut self.uses, 1);
            self.uses.push(0);
        }
        self.dead_words += HEADER + frames.len();
        self.index.insert(hash, id.0);
        Some(id)
    }

    /// Whether the number still stands for the stack with that serial.
    pub(crate) fn is_still(&self, id: StackId, serial: u32) -> bool {
        let at = id.0 as usize;
        at < self.slots.len() && self.slots[at].serial == serial && self.uses[at] > 0
    }

    /// Number of kept samples with this stack.
    pub(crate) fn uses(&self, id: StackId) -> u32 {
        self.uses[id.0 as usize]
    }

    /// Counts one more kept sample with this stack.
    #[inline]
    pub(crate) fn add_use(&mut self, id: StackId) {
        if self.uses[id.0 as usize] == 0 {
            self.dead_words -= HEADER + self.frames(id).len();
        }
        self.uses[id.0 as usize] += 1;
    }

    /// Counts one kept sample less; at 0 the stack is dead.
    #[inline]
    pub(crate) fn drop_use(&mut self, id: StackId) {
        self.uses[id.0 as usize] -= 1;
        if self.uses[id.0 as usize] == 0 {
            self.dead_words += HEADER + self.frames(id).len();
        }
    }

    /// Whether more than half of the arena is dead, and enough of it to be worth compacting.
    pub(crate) fn is_half_dead(&self) -> bool {
        self.dead_words > DEAD_WORDS_MIN && self.dead_words * 2 > self.table.arena.words()
    }

    /// Whether more than a quarter of the arena is dead, however small it is.
    pub(crate) fn is_quarter_dead(&self) -> bool {
        self.dead_words * 4 > self.table.arena.words()
    }

    /// Removes the dead stacks. Their numbers may be reused.
    pub(crate) fn compact(&mut self) {
        let uses = &self.uses;
        self.index.retain(|id| uses[id as usize] > 0);
        let slots = cow::write(&mut self.table.slots);
        // Done chunk by chunk, so that memory that no view shares is freed on the way.
        for chunk in self.table.arena.take_chunks() {
            for (id, frames) in stacks_in(&chunk) {
                if self.uses[id.0 as usize] == 0 {
                    self.free.push(id);
                    continue;
                }
                let header = [id.0, frames.len() as u32];
                let place = self.table.arena.push(&[&header, frames]);
                slots[id.0 as usize].place = place.expect("it had room before");
            }
        }
        self.dead_words = 0;
        self.drop_free_tail();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.arena.memory_bytes()
            + self.slots.capacity() * size_of::<Slot>()
            + self.uses.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<StackId>()
            + self.index.memory_bytes()
    }

    /// Approximate number of bytes that [`Stacks::compact`] would free.
    pub(crate) fn dead_bytes(&self) -> usize {
        self.dead_words * size_of::<u32>()
    }

    /// Drops free numbers at the end of the table, so that it shrinks, too.
    fn drop_free_tail(&mut self) {
        self.free.sort_unstable();
        let slots = cow::write(&mut self.table.slots);
        while let Some(last) = self.free.last()
            && last.0 as usize + 1 == slots.len()
        {
            slots.pop();
            self.uses.pop();
            self.free.pop();
        }
        slots.shrink_to(slots.len() * 5 / 4);
        self.uses.shrink_to(slots.len() * 5 / 4);
        self.free.shrink_to(self.free.len() * 5 / 4);
    }
}

/// The stacks of one chunk.
fn stacks_in(chunk: &[u32]) -> impl Iterator<Item = (StackId, &[u32])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let id = StackId(*chunk.get(at)?);
        let frames = &chunk[at + HEADER..][..chunk[at + 1] as usize];
        at += HEADER + frames.len();
        Some((id, frames))
    })
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
