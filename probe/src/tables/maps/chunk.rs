//! A chunk of the pool, and the windows through which it is read and written. Mapped pages of a map
//! count as memory of this process, all of a mapping at once, and the kernel maps them one by one:
//! so only the windows that are used are mapped.

use super::CHUNK_BYTES;
use crate::shared::Shared;
use probe_ebpf::table::CHUNK_SHIFT;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The number of a word, shifted right by this, is the number of its window: a window has 64 KiB,
/// and a table a few of them.
pub const WINDOW_SHIFT: u32 = 14;

/// Number of words in a window.
const WINDOW_WORDS: usize = 1 << WINDOW_SHIFT;

/// Number of windows in a chunk.
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

/// Consecutive words of a chunk. A BPF map stays mapped as long as there is a copy of this.
#[derive(Debug, Clone)]
pub struct Window {
    memory: Arc<Shared>,
    /// Index of its first word in that memory.
    first: usize,
}

impl Chunk {
    /// Makes a chunk in the memory of this process, which BPF does not see.
    pub fn heap() -> Self {
        Self {
            memory: Memory::Heap(Arc::new(Shared::heap(CHUNK_BYTES))),
        }
    }

    /// Makes a chunk from an mmapable BPF array with one element.
    pub fn map(array: OwnedFd) -> Self {
        Self {
            memory: Memory::Map(array),
        }
    }

    /// Returns one of its [`WINDOWS`], by number.
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
    /// Returns the word with this number in the pool or in the chunk, which has to be in this
    /// window.
    pub fn word(&self, number: usize) -> &AtomicU32 {
        &self.memory.words()[self.first + number % WINDOW_WORDS]
    }

    /// Returns the words from this number on to the end of the window.
    pub fn words_from(&self, number: usize) -> &[AtomicU32] {
        &self.memory.words()[self.first..self.first + WINDOW_WORDS][number % WINDOW_WORDS..]
    }
}
