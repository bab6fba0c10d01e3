//! The words of all stacks, in chunks that views share. What is written last
//! lies in the last chunk, so a store that goes on after a view was taken
//! copies one chunk and not all.

use std::sync::Arc;

/// Bits of a place inside its chunk: 256 KiB each.
const CHUNK_BITS: u32 = 16;
pub(super) const CHUNK_WORDS: usize = 1 << CHUNK_BITS;

/// Where a run of words begins: the chunk above, the word in it below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunStart(u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    chunks: Vec<Arc<Vec<u32>>>,
    words: usize,
}

impl Arena {
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// From a place to the end of its chunk.
    #[inline]
    pub(super) fn at(&self, place: RunStart) -> &[u32] {
        let chunk = &self.chunks[(place.0 >> CHUNK_BITS) as usize];
        &chunk[place.0 as usize % CHUNK_WORDS..]
    }

    /// Stores `words` side by side; `None` if there are too many of them, or no
    /// place is left to be named.
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
            if self.chunks.len() >= CHUNK_WORDS {
                return None;
            }
            self.chunks.push(Arc::default());
        }
        let last = self.chunks.len() - 1;
        let chunk = crate::cow::grow(&mut self.chunks[last], len);
        let place = RunStart((last << CHUNK_BITS) as u32 | chunk.len() as u32);
        words.iter().for_each(|part| chunk.extend_from_slice(part));
        self.words += len;
        Some(place)
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u32]> {
        self.chunks.iter().map(|chunk| &***chunk)
    }

    /// Takes the chunks out, to be written again one by one.
    pub(super) fn take_chunks(&mut self) -> Vec<Arc<Vec<u32>>> {
        self.words = 0;
        std::mem::take(&mut self.chunks)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let words: usize = self.chunks.iter().map(|chunk| chunk.capacity()).sum();
        words * size_of::<u32>()
    }
}
