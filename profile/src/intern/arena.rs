//! Storage for the words of all stacks, or of all blocks of callers, in chunks that are shared with
//! views. New words are written to the last chunk, so when the store continues after a view was
//! taken it copies one chunk and not all.

use crate::growth;
use std::sync::Arc;

/// Number of bits of a position inside its chunk; chunks have 64 KiB.
const CHUNK_BITS: u32 = 14;
/// Words in one chunk.
pub(super) const CHUNK_WORDS: usize = 1 << CHUNK_BITS;
/// Maximum number of chunks: more have no position.
const CHUNKS_MAX: usize = 1 << (u32::BITS - CHUNK_BITS);

/// Position where a run of words begins: the number of the chunk in the upper bits, the word in it
/// in the lower.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunStart(pub(super) u32);

impl RunStart {
    /// Returns the number of the chunk, and of the word in it.
    pub(super) fn parts(self) -> (usize, usize) {
        let place = self.0 as usize;
        (place >> CHUNK_BITS, place % CHUNK_WORDS)
    }
}

/// The chunks with the words of all stacks.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    chunks: Vec<Arc<Vec<u32>>>,
    /// Words that all chunks except the last one have room for: only the last one grows.
    settled_words: usize,
}

impl Arena {
    /// Returns the words from `place` to the end of its chunk.
    #[inline]
    pub(super) fn at(&self, place: RunStart) -> &[u32] {
        let (chunk, word) = place.parts();
        &self.chunks[chunk][word..]
    }

    /// Stores `words` side by side and returns where; `None` if they do not fit into one chunk, or
    /// if no position is left.
    pub(super) fn push(&mut self, words: &[&[u32]]) -> Option<RunStart> {
        let len: usize = words.iter().map(|part| part.len()).sum();
        if len > CHUNK_WORDS {
            return None;
        }
        if self
            .chunks
            .last()
            .is_none_or(|c| c.len() + len > CHUNK_WORDS)
        {
            if self.chunks.len() >= CHUNKS_MAX {
                return None;
            }
            self.settled_words += self.last_words();
            self.chunks.push(Arc::default());
        }
        let last = self.chunks.len() - 1;
        let chunk = grow(&mut self.chunks[last], len);
        let place = RunStart((last << CHUNK_BITS) as u32 | chunk.len() as u32);
        words.iter().for_each(|part| chunk.extend_from_slice(part));
        Some(place)
    }

    /// The used part of each chunk, in the order in which they were filled.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u32]> {
        self.chunks.iter().map(|chunk| &***chunk)
    }

    /// Takes all chunks out, so that the caller can write their live parts again one by one.
    pub(super) fn take_chunks(&mut self) -> Vec<Arc<Vec<u32>>> {
        std::mem::take(self).chunks
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.settled_words + self.last_words()) * size_of::<u32>()
    }

    /// Words that the last chunk has room for.
    fn last_words(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.capacity())
    }
}

/// Returns a chunk for writing, with room for `more` words. If a view shares it, it is copied, and
/// the copy is allocated with that room instead of growing later.
fn grow(chunk: &mut Arc<Vec<u32>>, more: usize) -> &mut Vec<u32> {
    if Arc::get_mut(chunk).is_none() {
        let mut copy = Vec::with_capacity(growth::with_room(chunk.len(), more));
        copy.extend_from_slice(chunk);
        *chunk = Arc::new(copy);
    }
    let chunk = Arc::make_mut(chunk);
    growth::reserve(chunk, more);
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::Random;

    #[test]
    fn the_memory_is_that_of_all_chunks() {
        let mut random = Random::new(3);
        let mut arena = Arena::default();
        // A view shares the last chunk, so that it is copied when it grows.
        let mut view = arena.clone();
        for step in 0..2_000 {
            let words = vec![1; random.index(CHUNK_WORDS / 20)];
            arena.push(&[&words]).expect("there is room");
            if step % 37 == 0 {
                view = arena.clone();
            }
            for arena in [&arena, &view] {
                let words: usize = arena.chunks.iter().map(|chunk| chunk.capacity()).sum();
                assert_eq!(arena.memory_bytes(), words * size_of::<u32>());
            }
        }
        assert!(arena.chunks.len() > 10);
        arena.take_chunks();
        assert_eq!(arena.memory_bytes(), 0);
    }
}
