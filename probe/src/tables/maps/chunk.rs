//! A chunk of the pool. Its memory is only mapped while somebody uses it: pages
//! of a map that are mapped count as ours, all at once, for as long as they
//! are.

use super::CHUNK_BYTES;
use crate::tables::shared::Shared;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, Weak};

/// One chunk of the pool, mapped into our memory.
#[derive(Debug)]
pub struct Chunk {
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Heap(Arc<Shared>),
    Map {
        array: OwnedFd,
        mapped: Mutex<Weak<Shared>>,
    },
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
            memory: Memory::Map {
                array,
                mapped: Mutex::default(),
            },
        }
    }

    /// Its words, for as long as they are held.
    pub fn words(&self) -> io::Result<Arc<Shared>> {
        let (array, mapped) = match &self.memory {
            Memory::Heap(words) => return Ok(words.clone()),
            Memory::Map { array, mapped } => (array, mapped),
        };
        let mut mapped = mapped.lock().unwrap_or_else(|lock| lock.into_inner());
        if let Some(words) = mapped.upgrade() {
            return Ok(words);
        }
        let words = Arc::new(Shared::map(array.as_fd(), CHUNK_BYTES)?);
        *mapped = Arc::downgrade(&words);
        Ok(words)
    }
}
