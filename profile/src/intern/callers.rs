//! The callers of stacks, each sequence of them stored once.
//!
//! Samples of a program share most of what called the sampled function: of a compiler's stacks, a
//! tenth of all frames are different. So the outer frames of a stack are stored in *blocks* of
//! [`BLOCK_FRAMES`], counted from the root, and a block refers to the one outside of it. Blocks are
//! compared with their callers, so stacks share all of their outer frames down to the block in
//! which they differ:
//!
//! ```text
//! stack: 1 to 7 own frames ──► block ──► block ──► root
//! stack: 1 to 7 own frames ─────────────┘
//! ```
//!
//! A tree of single frames would share a little more, but has seven times as many nodes to look up.
//!
//! Blocks are shared with views and never change. When stacks are compacted, blocks that none of
//! them uses are left behind ([`Moving`]).

use super::arena::{Arena, CHUNK_WORDS, RunStart};
use crate::FrameId;
use crate::hash::Seed;
use crate::index::Index;

/// Number of frames of a block.
pub(super) const BLOCK_FRAMES: usize = 7;

/// A block has `1 << WORD_BITS` words: the block outside of it, and its frames, innermost first.
const WORD_BITS: u32 = 3;
const BLOCK_WORDS: usize = 1 << WORD_BITS;

const _: () = assert!(1 + BLOCK_FRAMES == BLOCK_WORDS && CHUNK_WORDS.is_multiple_of(BLOCK_WORDS));

/// The number of a block: its place among all, in the order in which they were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockId(u32);

impl BlockId {
    /// Stands for no further frames.
    pub(super) const ROOT: BlockId = BlockId(u32::MAX >> WORD_BITS);

    /// Packs the number together with a number of own frames, from 1 to [`BLOCK_FRAMES`].
    pub(super) fn with_own(self, own_frames: usize) -> u32 {
        self.0 << WORD_BITS | own_frames as u32
    }

    /// Reverses [`BlockId::with_own`].
    #[inline]
    pub(super) fn and_own(word: u32) -> (BlockId, usize) {
        (BlockId(word >> WORD_BITS), word as usize % BLOCK_WORDS)
    }
}

/// The blocks of all stacks, as far as views share them.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockTable {
    arena: Arena,
}

impl BlockTable {
    /// Returns the frames of a block, and the block outside of it.
    #[inline]
    fn block(&self, id: BlockId) -> (&[u32], BlockId) {
        let words = self.arena.at(RunStart(id.0 << WORD_BITS));
        (&words[1..BLOCK_WORDS], BlockId(words[0]))
    }

    /// Returns a stack's frames: its own, then those of a block and of all blocks outside of it.
    #[inline]
    pub(super) fn frames<'t>(&'t self, own: &'t [u32], block: BlockId) -> StackFrames<'t> {
        StackFrames {
            blocks: self,
            part: own.iter(),
            block,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }
}

/// The frame numbers of a stack, innermost first.
#[derive(Debug, Clone)]
pub(crate) struct StackFrames<'t> {
    blocks: &'t BlockTable,
    part: std::slice::Iter<'t, u32>,
    /// The block after `part`.
    block: BlockId,
}

impl Iterator for StackFrames<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        if self.part.len() == 0 {
            if self.block == BlockId::ROOT {
                return None;
            }
            let (frames, outside) = self.blocks.block(self.block);
            self.part = frames.iter();
            self.block = outside;
        }
        self.part.next().map(|frame| FrameId(*frame))
    }
}

/// Finds blocks by their frames.
#[derive(Debug)]
pub(super) struct Callers {
    seed: Seed,
    index: Index,
}

impl Callers {
    pub(super) fn new(seed: Seed) -> Self {
        let index = Index::new();
        Self { seed, index }
    }

    /// Number of a stack's frames that are not in blocks, for any depth but 0: the last frame is
    /// always one of them.
    pub(super) fn own_frames(depth: usize) -> usize {
        (depth - 1) % BLOCK_FRAMES + 1
    }

    /// Stores these frames in blocks, innermost first; their number is a multiple of
    /// [`BLOCK_FRAMES`]. Returns the innermost block; `None` if there is no room.
    pub(super) fn intern(&mut self, table: &mut BlockTable, frames: &[u32]) -> Option<BlockId> {
        let mut from_root = frames.rchunks_exact(BLOCK_FRAMES);
        from_root.try_fold(BlockId::ROOT, |outside, frames| {
            self.intern_block(table, frames, outside)
        })
    }

    fn intern_block(
        &mut self,
        table: &mut BlockTable,
        frames: &[u32],
        outside: BlockId,
    ) -> Option<BlockId> {
        let hash = self.seed.hash_words(outside.0, frames);
        let is_it = |id: u32| table.block(BlockId(id)) == (frames, outside);
        if let Some(known) = self.index.find(hash, is_it) {
            return Some(BlockId(known));
        }
        let place = table.arena.push(&[&[outside.0], frames])?;
        let id = BlockId(place.0 >> WORD_BITS);
        if id == BlockId::ROOT {
            return None;
        }
        self.index.insert(hash, id.0);
        Some(id)
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.index = Index::new();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
    }
}

/// The blocks before unused ones are left behind, and where the used ones were moved to.
#[derive(Debug)]
pub(super) struct Moving {
    old: BlockTable,
    /// The new number of each block; [`BlockId::ROOT`] if it was not moved.
    moved: Vec<BlockId>,
    path: Vec<BlockId>,
}

impl Moving {
    /// Begins to leave unused blocks behind: those that a stack uses have to be moved.
    pub(super) fn start(table: &mut BlockTable, callers: &mut Callers) -> Self {
        let old = std::mem::take(table);
        callers.clear();
        let places = old.arena.chunks().count() * (CHUNK_WORDS / BLOCK_WORDS);
        Self {
            old,
            moved: vec![BlockId::ROOT; places],
            path: Vec::new(),
        }
    }

    /// Moves a block and all outside of it, unless that was done, and returns its new number.
    pub(super) fn moved(
        &mut self,
        block: BlockId,
        table: &mut BlockTable,
        callers: &mut Callers,
    ) -> BlockId {
        let mut next = block;
        let mut outside = BlockId::ROOT;
        self.path.clear();
        while next != BlockId::ROOT {
            let moved = self.moved[next.0 as usize];
            if moved != BlockId::ROOT {
                outside = moved;
                break;
            }
            self.path.push(next);
            next = self.old.block(next).1;
        }
        for block in self.path.drain(..).rev() {
            let (frames, _) = self.old.block(block);
            outside = callers
                .intern_block(table, frames, outside)
                .expect("it had room before");
            self.moved[block.0 as usize] = outside;
        }
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(table: &BlockTable) -> usize {
        table.arena.chunks().map(<[u32]>::len).sum()
    }

    fn frames_of(table: &BlockTable, block: BlockId) -> Vec<u32> {
        let frames = table.frames(&[], block);
        frames.map(|frame| frame.0).collect()
    }

    #[test]
    fn equal_callers_are_stored_once() {
        let mut callers = Callers::new(Seed::random());
        let mut table = BlockTable::default();
        let all: Vec<u32> = (0..56).collect();
        let whole = callers.intern(&mut table, &all).unwrap();
        assert_eq!(words(&table), 8 * BLOCK_WORDS);
        assert_eq!(callers.intern(&mut table, &all), Some(whole));
        let outer = callers.intern(&mut table, &all[14..]).unwrap();
        assert_eq!(words(&table), 8 * BLOCK_WORDS);
        assert_eq!(frames_of(&table, outer), all[14..]);
        // The same frames with other callers are another block.
        let other = callers.intern(&mut table, &all[..7]).unwrap();
        assert_ne!(other, whole);
        assert_eq!(frames_of(&table, other), all[..7]);
        assert_eq!(callers.intern(&mut table, &[]), Some(BlockId::ROOT));
    }

    #[test]
    fn what_is_not_moved_is_left_behind() {
        let mut callers = Callers::new(Seed::random());
        let mut table = BlockTable::default();
        // More than a chunk.
        let stacks: Vec<Vec<u32>> = (0..20_000)
            .map(|stack| (0..14).map(|depth| stack / (1 + depth)).collect())
            .collect();
        let blocks: Vec<BlockId> = stacks
            .iter()
            .map(|stack| callers.intern(&mut table, stack).unwrap())
            .collect();
        let before = words(&table);
        assert!(before > CHUNK_WORDS);
        let mut moving = Moving::start(&mut table, &mut callers);
        for (stack, block) in stacks.iter().zip(&blocks).step_by(5) {
            let moved = moving.moved(*block, &mut table, &mut callers);
            assert_eq!(frames_of(&table, moved), *stack);
            assert_eq!(moving.moved(*block, &mut table, &mut callers), moved);
            let found = callers.intern(&mut table, stack);
            assert_eq!(found, Some(moved), "it is found again");
        }
        assert!(words(&table) < before / 2);
    }

    #[test]
    fn every_stack_has_a_frame_of_its_own() {
        let own = [1, 2, 7, 8, 14, 15, 4096].map(Callers::own_frames);
        assert_eq!(own, [1, 2, 7, 1, 7, 1, 1]);
        for own in 1..=BLOCK_FRAMES {
            for block in [BlockId(0), BlockId(77), BlockId::ROOT] {
                assert_eq!(BlockId::and_own(block.with_own(own)), (block, own));
            }
        }
    }
}
