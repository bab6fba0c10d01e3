//! *Haste*: the last moments of a run at a higher priority.
//!
//! To end, a run needs some tenths of a second of CPU time, for the last samples and for the report
//! or the file. Where many programs wait for each CPU, it would wait for them for several seconds.
//! So proftop calls [`begin`] when a signal, a key or the end of its terminal ends a run.

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
