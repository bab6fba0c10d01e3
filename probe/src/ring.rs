//! The ring that a perf event writes and proftop reads: a header page with two positions, followed
//! by data whose size is a power of two.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in `struct perf_event_mmap_page`, fixed since Linux 2.6.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// Longest record: its length is 16 bits.
const RECORD_MAX: usize = u16::MAX as usize;

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    /// Size of the header: a page, of which arm64 has several sizes.
    header_bytes: usize,
    data_bytes: usize,
    /// Buffer in which a record that wraps around the end is put together.
    scratch: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and may be used from any
// thread, one at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// Size of the data.
    pub fn bytes(&self) -> usize {
        self.data_bytes
    }

    /// Maps the ring of an event that has none yet. `data_bytes` is a power of two.
    pub fn map(event: BorrowedFd<'_>, data_bytes: usize) -> io::Result<Self> {
        let header_bytes = rustix::param::page_size();
        // The kernel requires whole pages.
        let data_bytes = data_bytes.max(header_bytes);
        assert!(data_bytes.is_power_of_two());
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                header_bytes + data_bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                event,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            base,
            header_bytes,
            data_bytes,
            scratch: Vec::new(),
        })
    }

    /// Passes every complete record, including its header, to `each`, and frees its space.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        while tail < head {
            let header = self.bytes_at(tail, 8);
            let length = usize::from(u16::from_le_bytes([header[6], header[7]]));
            // An impossible length: nothing after it can be trusted.
            if length < 8 || length as u64 > head - tail {
                tail = head;
                break;
            }
            each(self.bytes_at(tail, length));
            tail += length as u64;
        }
        self.position(TAIL).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the header page, aligned, and the kernel uses it
        // atomically as well.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Returns `length` bytes at a position, which only grows. The kernel does not overwrite them
    /// before the tail has passed them.
    fn bytes_at(&mut self, position: u64, length: usize) -> &[u8] {
        debug_assert!(length <= RECORD_MAX);
        let start = position as usize & (self.data_bytes - 1);
        let first = length.min(self.data_bytes - start);
        // SAFETY: `start + first` lies inside the mapped data.
        let one = unsafe { self.data_slice(start, first) };
        if first == length {
            return one;
        }
        let mut whole = std::mem::take(&mut self.scratch);
        whole.clear();
        whole.extend_from_slice(one);
        // SAFETY: the rest begins at the start of the data and is shorter.
        whole.extend_from_slice(unsafe { self.data_slice(0, length - first) });
        self.scratch = whole;
        &self.scratch
    }

    /// # Safety
    /// The range must lie inside the data, and in front of the kernel's head.
    unsafe fn data_slice<'a>(&self, start: usize, length: usize) -> &'a [u8] {
        // SAFETY: the caller's promise; the mapping lives as long as `self`,
        // and the slices are used before the tail moves.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.header_bytes + start), length)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.header_bytes + self.data_bytes;
        // SAFETY: our own mapping, of this length; nothing refers to it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), length) };
    }
}
