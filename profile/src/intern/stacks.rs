//! The table of stacks.
//!
//! A *stack* here is a chain of frame numbers, innermost first. The innermost ones, seven at most,
//! lie in an arena, one stack after the other; those outside of them are in blocks that stacks
//! share ([`super::callers`]). So a stack costs some seventy bytes, whatever its depth, as long as
//! others have the same callers.
//!
//! Each stack counts the kept samples that use it. At zero it is *dead*: still stored, and alive
//! again if it is sampled again, which is likely. When more than a quarter of the stacks is dead,
//! [`Stacks::compact`] moves the live ones together. Only samples refer to a stack's number, and it
//! does not change as long as one does, so samples need no rewriting.
//!
//! The arena, the blocks and the table of numbers are shared with views.

use super::arena::{Arena, CHUNK_WORDS, RunStart};
use super::callers::{BLOCK_FRAMES, BlockId, BlockTable, Callers, Moving, StackFrames};
use crate::growth;
use crate::hash::Seed;
use crate::index::Index;
use crate::pieces::Pieces;
use crate::{Frame, FrameId};
use std::ops::Deref;

/// Maximum depth of a stack that is kept whole: far more than any sampler walks, and a limit for
/// files that are not trusted.
pub const STACK_DEPTH_MAX: usize = 4096;

/// The number of an interned stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StackId(pub(crate) u32);

/// Number of words before a stack's own frames: its number, so that the arena can be walked, and
/// compacted, without a second table; and the block with the further frames, with the number of
/// its own ones.
const HEADER: usize = 2;

const _: () = assert!(BLOCK_FRAMES + HEADER <= CHUNK_WORDS);

/// Number of dead stacks below which compacting is not worthwhile.
const DEAD_MIN: usize = 2048;

/// The table of stacks: a part that is shared with views, and a part that only the store has.
#[derive(Debug)]
pub(crate) struct Stacks {
    seed: Seed,
    index: Index,
    callers: Callers,
    table: StackTable,
    /// Number of kept samples with each stack.
    uses: Vec<u32>,
    /// Free stack numbers.
    free: Vec<StackId>,
    /// Number of stacks without a sample.
    dead: usize,
    /// Serial of the next new stack.
    serial: u32,
}

/// The part of the table that is shared with views.
#[derive(Debug, Clone, Default)]
pub(crate) struct StackTable {
    arena: Arena,
    blocks: BlockTable,
    slots: Pieces<Slot>,
}

/// The entry of a stack number. A free number keeps the entry of its last stack.
#[derive(Debug, Clone, Copy, Default)]
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

    /// Returns the frames of a stack, innermost first; it has at least one.
    #[inline]
    pub(crate) fn frames(&self, id: StackId) -> StackFrames<'_> {
        let words = self.arena.at(self.slots[id.0 as usize].place);
        self.frames_of(&Run::first_of(words))
    }

    #[inline]
    fn frames_of<'t>(&'t self, run: &Run<'t>) -> StackFrames<'t> {
        self.blocks.frames(run.own, run.block)
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, StackFrames<'_>)> {
        let runs = self.arena.chunks().flat_map(runs_in);
        runs.map(|run| (run.id, self.frames_of(&run)))
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
            callers: Callers::new(seed.clone()),
            seed,
            index: Index::new(),
            table: StackTable::default(),
            uses: Vec::new(),
            free: Vec::new(),
            dead: 0,
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
            let mut frames = self.frames(StackId(number));
            let is_at = |at: usize| frames.next().is_some_and(|frame| frame_is(at, frame));
            (0..depth).all(is_at) && frames.next().is_none()
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
        let (own, outer) = numbers.split_at(Callers::own_frames(frames.len()));
        let block = self.callers.intern(&mut self.table.blocks, outer)?;
        let header = [id.0, block.with_own(own.len())];
        let slot = Slot {
            place: self.table.arena.push(&[&header, own])?,
            leaf,
            serial: self.serial,
        };
        self.serial = self.serial.wrapping_add(1);
        if self.free.pop().is_some() {
            *self.table.slots.write(id.0 as usize) = slot;
            self.uses[id.0 as usize] = 0;
        } else {
            self.table.slots.push(slot);
            growth::reserve(&mut self.uses, 1);
            self.uses.push(0);
        }
        self.dead += 1;
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
            self.dead -= 1;
        }
        self.uses[id.0 as usize] += 1;
    }

    /// Counts one kept sample less; at 0 the stack is dead.
    #[inline]
    pub(crate) fn drop_use(&mut self, id: StackId) {
        self.uses[id.0 as usize] -= 1;
        if self.uses[id.0 as usize] == 0 {
            self.dead += 1;
        }
    }

    /// Whether more than a quarter of the stacks is dead, and enough of them to be worth compacting:
    /// that takes as long as adding the others did.
    pub(crate) fn has_many_dead(&self) -> bool {
        self.dead > DEAD_MIN && self.is_quarter_dead()
    }

    /// Whether more than a quarter of the stacks is dead, however few there are.
    pub(crate) fn is_quarter_dead(&self) -> bool {
        self.dead * 4 > self.stored()
    }

    /// Removes the dead stacks, and the blocks that only they used. The numbers of stacks may be
    /// reused.
    pub(crate) fn compact(&mut self) {
        let uses = &self.uses;
        self.index.retain(|id| uses[id as usize] > 0);
        let table = &mut self.table;
        let mut moving = Moving::start(&mut table.blocks, &mut self.callers);
        // Done chunk by chunk, so that memory that no view shares is freed on the way.
        for chunk in table.arena.take_chunks() {
            for run in runs_in(&chunk) {
                if self.uses[run.id.0 as usize] == 0 {
                    self.free.push(run.id);
                    continue;
                }
                let block = moving.moved(run.block, &mut table.blocks, &mut self.callers);
                let header = [run.id.0, block.with_own(run.own.len())];
                let place = table.arena.push(&[&header, run.own]);
                let place = place.expect("it had room before");
                table.slots.write(run.id.0 as usize).place = place;
            }
        }
        self.dead = 0;
        self.drop_free_tail();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.arena.memory_bytes()
            + self.table.blocks.memory_bytes()
            + self.callers.memory_bytes()
            + self.slots.memory_bytes()
            + self.uses.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<StackId>()
            + self.index.memory_bytes()
    }

    /// Approximate number of bytes that [`Stacks::compact`] would free.
    pub(crate) fn dead_bytes(&self) -> usize {
        self.memory_bytes() / self.stored().max(1) * self.dead
    }

    /// Drops free numbers at the end of the table, so that it shrinks, too.
    fn drop_free_tail(&mut self) {
        self.free.sort_unstable();
        let slots = &mut self.table.slots;
        while let Some(last) = self.free.last()
            && last.0 as usize + 1 == slots.len()
        {
            slots.pop();
            self.uses.pop();
            self.free.pop();
        }
        self.uses.shrink_to(slots.len() * 5 / 4);
        self.free.shrink_to(self.free.len() * 5 / 4);
    }
}

/// A stack as it lies in the arena.
#[derive(Debug, Clone, Copy)]
struct Run<'t> {
    id: StackId,
    /// The block with the frames after its own.
    block: BlockId,
    own: &'t [u32],
}

impl<'t> Run<'t> {
    /// Reads the run at the beginning of these words.
    #[inline]
    fn first_of(words: &'t [u32]) -> Self {
        let (block, own) = BlockId::and_own(words[1]);
        Self {
            id: StackId(words[0]),
            block,
            own: &words[HEADER..][..own],
        }
    }
}

/// The stacks of one chunk.
fn runs_in(chunk: &[u32]) -> impl Iterator<Item = Run<'_>> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let run = (!rest.is_empty()).then(|| Run::first_of(rest))?;
        rest = &rest[HEADER + run.own.len()..];
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use test_support::Random;

    /// A stack of frame numbers that stands for itself.
    fn add(stacks: &mut Stacks, hash: u32, frames: &[u32]) -> StackId {
        let wanted: Vec<FrameId> = frames.iter().map(|f| FrameId(*f)).collect();
        let found = stacks.find(hash, wanted.len(), |at, id| wanted[at] == id);
        let id = found.unwrap_or_else(|| stacks.insert(hash, &wanted).unwrap());
        stacks.add_use(id);
        id
    }

    fn frames_of(stacks: &Stacks, id: StackId) -> Vec<u32> {
        stacks.frames(id).map(|frame| frame.0).collect()
    }

    #[test]
    fn equal_stacks_are_one_even_if_all_hashes_collide() {
        let mut stacks = Stacks::new(Seed::random());
        let a = add(&mut stacks, 1, &[1, 2, 3]);
        let b = add(&mut stacks, 1, &[1, 2]);
        assert_ne!(a, b);
        assert_eq!(add(&mut stacks, 1, &[1, 2, 3]), a);
        assert_eq!(frames_of(&stacks, a), [1, 2, 3]);
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
            assert_eq!(frames_of(&stacks, *id), [id.0, id.0 + 1, id.0 + 2]);
            assert_eq!(add(&mut stacks, id.0, &[id.0, id.0 + 1, id.0 + 2]), *id);
        }
        assert_eq!(stacks.stored(), 35);
        assert_eq!(stacks.iter().count(), 35);
        // A freed number is given again.
        let new = add(&mut stacks, 500, &[7]);
        assert!(ids.contains(&new));
        assert_eq!(frames_of(&stacks, new), [7]);
    }

    /// Stacks of any depth, with views of before and after, against a list of them.
    #[test]
    fn stacks_of_any_depth_are_what_they_were() {
        let mut random = Random::new(5);
        let mut stacks = Stacks::new(Seed::random());
        let mut kept: Vec<(StackId, Vec<u32>)> = Vec::new();
        for round in 0..40 {
            for _ in 0..200 {
                let depth = 1 + random.below(60) as usize;
                let root = random.below(3) as u32;
                // Few different frames, so that stacks share callers.
                let mut frames: Vec<u32> = (0..depth as u32).map(|at| root * 100 + at).collect();
                frames.reverse();
                frames[0] = random.below(9) as u32;
                let mut hash = DefaultHasher::new();
                frames.hash(&mut hash);
                kept.push((add(&mut stacks, hash.finish() as u32, &frames), frames));
            }
            let view = (stacks.table().clone(), kept.clone());
            let mut is_kept = || random.below(4) > 0;
            for (id, _) in kept.extract_if(.., |_| !is_kept()) {
                stacks.drop_use(id);
            }
            if round % 3 == 0 {
                stacks.compact();
                let live: HashSet<StackId> = kept.iter().map(|(id, _)| *id).collect();
                assert_eq!(stacks.stored(), live.len());
            }
            for (id, frames) in &kept {
                assert_eq!(frames_of(&stacks, *id), *frames);
                assert_eq!(stacks.leaf(*id), FrameId(frames[0]));
            }
            let (table, then) = view;
            for (id, frames) in then {
                assert!(table.frames(id).eq(frames.into_iter().map(FrameId)));
            }
        }
    }

    /// A compiler's stacks: most of their frames are callers that they share.
    #[test]
    fn shared_callers_take_little_memory() {
        let mut stacks = Stacks::new(Seed::random());
        let (depth, count) = (64, 20_000);
        for stack in 0..count {
            let frames: Vec<u32> = (0..depth).map(|at| stack >> at.min(20)).collect();
            add(&mut stacks, stack.wrapping_mul(0x9e37_79b9), &frames);
        }
        let each = stacks.memory_bytes() / count as usize;
        assert!(each < depth as usize * size_of::<u32>() / 2, "{each}");
    }
}
