//! The BPF maps that tell the kernel side where Python's frames are.

use crate::plain::Plain;
use aya::maps::{HashMap, MapData};
use probe_ebpf::python::{Layout, ThreadState};

// SAFETY: structures of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Layout> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<ThreadState> {}

/// The maps.
pub struct PythonMaps {
    pub processes: HashMap<MapData, u32, Plain<Layout>>,
    pub threads: HashMap<MapData, u32, Plain<ThreadState>>,
}

impl PythonMaps {
    /// From now on the frames of a process are walked. False if there is no room for more.
    pub fn add_process(&mut self, pid: u32, layout: &Layout) -> bool {
        self.processes.insert(pid, Plain(*layout), 0).is_ok()
    }

    /// They are not walked any more.
    pub fn remove_process(&mut self, pid: u32) {
        // The kernel side has nothing of it then.
        let _ = self.processes.remove(&pid);
    }

    /// Where the frames of a thread are. False if there is no room for more.
    pub fn set_thread(&mut self, tid: u32, state: ThreadState) -> bool {
        self.threads.insert(tid, Plain(state), 0).is_ok()
    }

    /// It has ended.
    pub fn remove_thread(&mut self, tid: u32) {
        let _ = self.threads.remove(&tid);
    }
}
