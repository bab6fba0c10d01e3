//! *Haste*: the last moments of a run at a higher priority.
//!
//! Where many programs wait for each CPU, the tenths of a second of CPU time with which a run ends
//! (the last samples, the report or the file) would take several seconds. A run that was told to end
//! gets that time at once.

use rustix::process::{Pid, getpriority_process, setpriority_process};
use std::fs;

/// Priority (nice value) of threads that end a run: such a thread gets nine times the share of one
/// with the normal priority.
const HASTY: i32 = -10;

/// Raises the priority of all threads of this process, unless the user wants another one than the
/// normal priority (`nice proftop`). Without CAP_SYS_NICE, or a limit that allows it (RLIMIT_NICE),
/// nothing changes.
///
/// Threads of a low priority are raised too: a process ends with the last of its threads, which on a
/// busy machine waits for a second and more for the CPU on which it ends.
pub fn begin() {
    if getpriority_process(None) != Ok(0) {
        return;
    }
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    for thread in threads.flatten() {
        let name = thread.file_name();
        let tid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(tid) = tid.and_then(Pid::from_raw) {
            _ = setpriority_process(Some(tid), HASTY);
        }
    }
}
