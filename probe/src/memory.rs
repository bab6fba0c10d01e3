//! What the allocator keeps: reading debug information and building tables takes
//! memory for a moment, which it would hold for ever.

pub mod room;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Less is not worth it: it will be wanted again.
const MUCH: usize = 3 << 20;

/// What was free when it was given back last, or less. What was given back counts as free
/// until it is used again.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// Returns to the kernel what is free, if much was freed since the last time.
pub fn give_back_much() {
    let free = free();
    let before = FREE.fetch_min(free, Ordering::Relaxed);
    if free.saturating_sub(before) > MUCH {
        give_back();
        FREE.store(free, Ordering::Relaxed);
    }
}

/// The memory of a process that is resident and no file's, in bytes; 0 if it has ended.
pub fn own_bytes_of(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    // Pages: all addresses, resident, of those of files or shared.
    let mut fields = statm.split(' ').map(|field| field.parse().unwrap_or(0u64));
    let (resident, of_files) = (fields.nth(1).unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(of_files) * rustix::param::page_size() as u64
}

/// Bytes that the allocator has and nobody uses.
fn free() -> usize {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes its own locks, and only reads.
        let told = unsafe { libc::mallinfo() };
        // It counts in 32 bits.
        told.fordblks as u32 as usize
    }
    #[cfg(not(target_env = "gnu"))]
    0
}

/// Returns to the kernel what is free.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes its own locks, and invalidates nothing.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// A piece as large as this is taken from the kernel by itself, and given back as soon as it is
/// free. glibc raises that to the largest piece that was ever freed, up to 32 MB: then tables
/// that are read for a moment lie between what stays.
#[cfg(target_env = "gnu")]
const PIECE_BYTES: libc::c_int = 256 << 10;

/// So much may be free at the end of the heap.
#[cfg(target_env = "gnu")]
const END_BYTES: libc::c_int = 512 << 10;

/// To be called before threads are started: they share two arenas then. With one
/// for each, what one thread has freed no other can use. Processes that are forked later keep to
/// it as well.
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
