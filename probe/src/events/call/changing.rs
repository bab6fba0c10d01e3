//! Changing the code of programs: one breakpoint at a time, and each of them whole.
//!
//! The kernel writes a breakpoint into each process when it is attached, and the instruction
//! back when its last descriptor is closed. If a fatal signal comes in between, it gives up:
//! the breakpoint stays, the kernel logs `failed to unregister, leaking uprobe`, and every
//! hit costs the program as much as before, until the program ends. The end of a process is
//! such a signal for all of its threads, but not for the closing of the descriptors that
//! are open then, which follows it. So the end of the process waits for the change that is
//! being made, and leaves all else to the kernel. What remains is a `kill -9` in just these
//! milliseconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// Held during a change. The kernel makes one at a time in any case.
static CHANGING: Mutex<()> = Mutex::new(());

/// The process ends, and nothing is changed any more.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The longest that the end of the process waits: a target that holds the lock of its own
/// memory does not hold up us. A change takes 20 to 100 ms on a machine that is not busy.
const WAIT_MAX: Duration = Duration::from_secs(3);

const LOOK_EVERY: Duration = Duration::from_millis(1);

/// To be called when the process is about to end, in whatever way: waits for the change that
/// is being made, and lets none begin.
pub fn leave_to_exit() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let end = Instant::now() + WAIT_MAX;
    while matches!(CHANGING.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < end {
        thread::sleep(LOOK_EVERY);
    }
}

/// Lets a change begin, which has to be over when the guard is dropped. `None` if the process
/// is about to end.
pub fn begin() -> Option<MutexGuard<'static, ()>> {
    // It guards no data.
    let guard = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    (!IS_ENDING.load(Ordering::SeqCst)).then_some(guard)
}
