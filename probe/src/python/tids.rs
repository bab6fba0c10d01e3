//! The threads of a process: their numbers in the process, and those of the kernel.

use crate::owner::inner_tid;
use probe_ebpf::python::TID_IN_PTHREAD;
use std::collections::BTreeMap;
use std::fs;
use symbolize::python::TIDS_IN_PTHREAD;

const _: () = assert!(TIDS_IN_PTHREAD[0] == TID_IN_PTHREAD);

/// Maximum number of threads of one process that are examined.
const TIDS_MAX: usize = 16_384;

/// Returns the threads of a process: from the tid that the process itself sees to the kernel's.
pub fn of_process(pid: u32) -> BTreeMap<u64, u32> {
    let mut tids = BTreeMap::new();
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
