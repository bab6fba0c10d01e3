//! Maps threads of the interpreter to threads of the kernel.

use crate::owner::inner_tid;
use probe_ebpf::python::TID_IN_PTHREAD;
use std::collections::HashMap;
use std::fs;
use symbolize::python::{Memory, Thread};

/// Maximum number of threads of one process that are examined.
const TIDS_MAX: usize = 16_384;

/// Offset of the tid from a `pthread_t`, in glibc and in musl on x86-64: musl's `struct pthread` is
/// in `src/internal/pthread_impl.h`.
const TIDS_IN_PTHREAD: [u64; 2] = [TID_IN_PTHREAD, 48];

/// Returns the threads of a process: from the tid that the process itself sees to the kernel's.
pub fn of_process(pid: u32) -> HashMap<u64, u32> {
    let mut tids = HashMap::new();
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return tids;
    };
    let is_inside = inner_tid(pid, pid).is_some_and(|own| own != pid);
    for entry in entries.flatten().take(TIDS_MAX) {
        let tid = entry.file_name().to_str().and_then(|tid| tid.parse().ok());
        let Some(tid) = tid else {
            continue;
        };
        // In a pid namespace it has another number.
        let own = if is_inside {
            inner_tid(pid, tid)
        } else {
            Some(tid)
        };
        if let Some(own) = own {
            tids.insert(own.into(), tid);
        }
    }
    tids
}

/// Returns the kernel's tid of a thread; `None` if it is not in `tids`.
pub fn find(thread: &Thread, tids: &HashMap<u64, u32>, memory: &impl Memory) -> Option<u32> {
    if let Some(own) = thread.tid {
        return tids.get(&own).copied();
    }
    TIDS_IN_PTHREAD.iter().find_map(|offset| {
        let start = thread.pthread.checked_add(*offset)?;
        let bytes = memory.read(start, 4).ok()?;
        let own = u32::from_le_bytes(bytes.try_into().ok()?);
        tids.get(&own.into()).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads() {
        let pid = std::process::id();
        let tids = of_process(pid);
        assert!(tids.values().any(|tid| *tid == pid), "{tids:?}");
        assert!(of_process(u32::MAX).is_empty());
    }
}
