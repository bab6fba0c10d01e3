//! What the allocator keeps: reading debug information and building tables takes
//! memory for a moment, which it would hold for ever.

/// Returns to the kernel what is free.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes its own locks, and invalidates nothing.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// To be called before threads are started: they share two arenas then. With one
/// for each, what one thread has freed no other can use.
pub fn share_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number that is read when a thread first allocates.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}
