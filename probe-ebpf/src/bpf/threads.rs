//! The threads whose waits are followed: where each is kept.

use super::maps::{THREAD_PLACES, THREADS};
use probe_ebpf::waits::Thread;
use probe_ebpf::waits::places::{self, FREE, PLACES, WAYS, row_of};

/// Returns what is known of a thread. Returns None if it is not followed.
#[inline(always)]
pub fn find(tid: u32) -> Option<*mut Thread> {
    // SAFETY: a row of the map's only value.
    let way = unsafe { places::find(row(tid)?, tid)? };
    THREADS.get_ptr_mut((row_of(tid) + way) as u32)
}

/// Starts to follow a thread. Returns false if there is no room for it.
#[inline(always)]
pub fn add(tid: u32, thread: &Thread) -> bool {
    let Some(row) = row(tid) else {
        return false;
    };
    // SAFETY: as above.
    let Some(way) = (unsafe { places::claim(row) }) else {
        return false;
    };
    let Some(kept) = THREADS.get_ptr_mut((row_of(tid) + way) as u32) else {
        return false;
    };
    // SAFETY: the place is ours until its number stands there; the mask keeps it in the row.
    unsafe {
        *kept = *thread;
        row.add(way & (WAYS - 1)).write_volatile(tid as u64);
    }
    true
}

/// Stops following a thread.
#[inline(always)]
pub fn remove(tid: u32) {
    let Some(row) = row(tid) else {
        return;
    };
    // SAFETY: as above.
    unsafe {
        if let Some(way) = places::find(row, tid) {
            row.add(way & (WAYS - 1)).write_volatile(FREE);
        }
    }
}

/// Returns the row that a thread is in.
#[inline(always)]
fn row(tid: u32) -> Option<*mut u64> {
    let words = THREAD_PLACES.get_ptr_mut(0)? as *mut u64;
    // SAFETY: the mask, which repeats that of `row_of`, keeps it inside the map's value.
    Some(unsafe { words.add(row_of(tid) & (PLACES - WAYS)) })
}
