//! Changes the code of programs: one breakpoint at a time, and each change completely.
//!
//! The kernel writes a breakpoint into each process when it is attached, and restores the
//! instruction when its last descriptor is closed. If a fatal signal arrives in between, it gives
//! up: the breakpoint stays, the kernel logs `failed to unregister, leaking uprobe`, and every hit
//! costs the program as much as before, until the program ends. The end of a process is such a
//! signal for all of its threads, but not for the closing of its open descriptors, which follows.
//! So before our process ends it waits for the running change, and leaves all others to the kernel.
//! Only a `kill -9` in exactly these milliseconds remains a problem.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// Held during a change. The kernel makes only one at a time in any case.
static CHANGING: Mutex<()> = Mutex::new(());

/// Whether the process is ending, so that no further change may begin.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Maximum time that the end of the process waits: a target that holds the lock of its own memory
/// must not block us. A change takes 20 to 100 ms on a machine that is not busy.
const WAIT_MAX: Duration = Duration::from_secs(3);

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Waits for the running change, for three seconds at most, and prevents further ones. Must be
/// called when the process is about to end, in whatever way.
pub fn leave_to_exit() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let end = Instant::now() + WAIT_MAX;
    while matches!(CHANGING.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < end {
        thread::sleep(LOOK_EVERY);
    }
}

/// Begins a change, which has to be complete when the guard is dropped. `None` if the process is
/// about to end.
pub fn begin() -> Option<MutexGuard<'static, ()>> {
    // A poisoned lock is used all the same, as it guards no data.
    let guard = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    (!IS_ENDING.load(Ordering::SeqCst)).then_some(guard)
}
