//! Memory that the kernel reads while proftop writes it: the one value of an mmapable BPF array or,
//! without BPF, memory on the heap.
//!
//! It is written word by word with atomics, so that a reader sees a whole old word or a whole new
//! one. The writer decides which words belong together, and in which order they appear.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A piece of memory, which is zero at first.
#[derive(Debug)]
pub struct Shared {
    base: NonNull<c_void>,
    bytes: usize,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Map,
    Heap,
}

// SAFETY: all access is through atomics, and the memory is given back only on
// drop.
unsafe impl Send for Shared {}
// SAFETY: access is through atomics only, and the memory is given back only on drop.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps `bytes` bytes of a BPF array that has one element and `BPF_F_MMAPABLE`; they begin at a
    /// page.
    pub fn map(array: BorrowedFd<'_>, from: usize, bytes: usize) -> io::Result<Self> {
        assert!(bytes.is_multiple_of(8));
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                array,
                from as u64,
            )?
        };
        let base = NonNull::new(base).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            base,
            bytes,
            origin: Origin::Map,
        })
    }

    /// Allocates memory of this process, which BPF does not see.
    pub fn heap(bytes: usize) -> Self {
        assert!(bytes.is_multiple_of(8));
        let memory = vec![0_u64; bytes / 8].into_boxed_slice();
        Self {
            base: NonNull::from(Box::leak(memory)).cast(),
            bytes,
            origin: Origin::Heap,
        }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all of it as words of 32 bits.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: `bytes` bytes, aligned to 8 at least, that live as long as
        // `self` and are only ever used atomically.
        unsafe { std::slice::from_raw_parts(self.base.cast().as_ptr(), self.bytes / 4) }
    }

    /// Returns all of it as words of 64 bits.
    pub fn double_words(&self) -> &[AtomicU64] {
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(self.base.cast().as_ptr(), self.bytes / 8) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        match self.origin {
            Origin::Map => {
                // SAFETY: our mapping, and nobody can borrow from it any more.
                let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr(), self.bytes) };
                debug_assert!(unmapped.is_ok(), "{unmapped:?}");
            }
            Origin::Heap => {
                let memory = NonNull::slice_from_raw_parts(self.base.cast(), self.bytes / 8);
                // SAFETY: the box that `heap` leaked, with the same length.
                drop(unsafe { Box::<[u64]>::from_raw(memory.as_ptr()) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn both_views_are_of_the_same_bytes() {
        let memory = Shared::heap(16);
        assert_eq!((memory.words().len(), memory.double_words().len()), (4, 2));
        memory.words()[3].store(7, Ordering::Relaxed);
        assert_eq!(memory.double_words()[1].load(Ordering::Relaxed), 7 << 32);
    }
}
