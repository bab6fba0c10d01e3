//! A chunk of the pool, and the windows through which it is read and written. Pages of a map
//! that are mapped count as our memory, all at once, for as long as they are, and the kernel
//! maps them one by one: so only the windows that somebody looks into are mapped.

use super::CHUNK_BYTES;
use crate::shared::Shared;
use probe_ebpf::table::CHUNK_SHIFT;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The number of a word, shifted right by so much, is the number of its window: 64 KiB, of
/// which a table has a few.
pub const WINDOW_SHIFT: u32 = 14;

/// Words of a window.
const WINDOW_WORDS: usize = 1 << WINDOW_SHIFT;

/// Windows of a chunk.
pub const WINDOWS: usize = 1 << (CHUNK_SHIFT - WINDOW_SHIFT);

/// One chunk of the pool.
#[derive(Debug)]
pub struct Chunk {
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Heap(Arc<Shared>),
    Map(OwnedFd),
}

/// Consecutive words of a chunk. What is a map stays mapped as long as there is a copy of this.
#[derive(Debug, Clone)]
pub struct Window {
    memory: Arc<Shared>,
    /// Where the first of its words is in that memory.
    first: usize,
}

impl Chunk {
    /// A chunk of this process alone, which BPF does not see.
    pub fn heap() -> Self {
        Self {
            memory: Memory::Heap(Arc::new(Shared::heap(CHUNK_BYTES))),
        }
    }

    /// The value of an mmapable BPF array with one element.
    pub fn map(array: OwnedFd) -> Self {
        Self {
            memory: Memory::Map(array),
        }
    }

    /// One of its [`WINDOWS`], by number.
    pub fn window(&self, number: usize) -> io::Result<Window> {
        assert!(number < WINDOWS);
        let first = number * WINDOW_WORDS;
        match &self.memory {
            Memory::Heap(memory) => Ok(Window {
                memory: Arc::clone(memory),
                first,
            }),
            Memory::Map(array) => {
                let (from, bytes) = (first * 4, WINDOW_WORDS * 4);
                let memory = Arc::new(Shared::map(array.as_fd(), from, bytes)?);
                Ok(Window { memory, first: 0 })
            }
        }
    }
}

impl Window {
    /// The word with this number in the pool or in the chunk, which is one of this window.
    pub fn word(&self, number: usize) -> &AtomicU32 {
        &self.memory.words()[self.first + number % WINDOW_WORDS]
    }

    /// The words from this number on to the end of the window.
    pub fn words_from(&self, number: usize) -> &[AtomicU32] {
        &self.memory.words()[self.first..self.first + WINDOW_WORDS][number % WINDOW_WORDS..]
    }
}
