//! Returns free memory of the allocator to the kernel: reading debug information and building
//! tables takes memory for a moment, which the allocator would keep for ever.

pub mod room;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum amount that is returned: less is not worth it, as it will soon be needed again.
const MUCH: usize = 3 << 20;

/// Bytes that were free when memory was last returned, or less. What was returned counts as free
/// until it is used again.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// Returns free memory to the kernel, if much was freed since the last time.
pub fn give_back_much() {
    let free = free();
    let before = FREE.fetch_min(free, Ordering::Relaxed);
    if free.saturating_sub(before) > MUCH {
        give_back();
        FREE.store(free, Ordering::Relaxed);
    }
}

/// Returns the private resident memory of a process, in bytes; 0 if it has ended.
pub fn own_bytes_of(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    // Numbers of pages: all addresses, resident, resident ones of files or shared.
    let mut fields = statm.split(' ').map(|field| field.parse().unwrap_or(0u64));
    let (resident, of_files) = (fields.nth(1).unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(of_files) * rustix::param::page_size() as u64
}

/// Returns the bytes that the allocator holds and that are not in use.
fn free() -> usize {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes its own locks, and only reads.
        let told = unsafe { libc::mallinfo() };
        // glibc counts in 32 bits.
        told.fordblks as u32 as usize
    }
    #[cfg(not(target_env = "gnu"))]
    0
}

/// Returns all free memory to the kernel.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes its own locks, and invalidates nothing.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Allocations of at least this size are mapped separately, and unmapped as soon as they are freed.
/// glibc otherwise raises this threshold to the largest such allocation that was ever freed, up to
/// 32 MB: then tables that are read for a moment lie between allocations that stay.
#[cfg(target_env = "gnu")]
const PIECE_BYTES: libc::c_int = 256 << 10;

/// Maximum free memory that is kept at the end of the heap.
#[cfg(target_env = "gnu")]
const END_BYTES: libc::c_int = 512 << 10;

/// Limits the allocator to two arenas, shared by all threads. Has to be called before threads are
/// started. With one arena for each thread, memory that one thread has freed cannot be used by
/// another. The setting also holds for processes that are forked later.
pub fn keep_small() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        (libc::M_ARENA_MAX, 2),
        (libc::M_MMAP_THRESHOLD, PIECE_BYTES),
        (libc::M_TRIM_THRESHOLD, END_BYTES),
    ] {
        // SAFETY: sets a number that is read when memory is taken or given back.
        unsafe {
            libc::mallopt(option, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_its_own_until_it_ends() {
        assert!(own_bytes_of(std::process::id()) > 1 << 16);
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("a program");
        let pid = child.id();
        child.wait().expect("ours");
        assert_eq!(own_bytes_of(pid), 0);
    }
}
