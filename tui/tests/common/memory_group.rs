//! A control group with little memory that is removed at the end of the test.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use test_support::{skip, wait_until};

/// The group. Dropping it waits until its last process has ended, and removes it.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a group of this size. Returns None if that is not possible, and prints why.
    pub fn of(bytes: u64) -> Option<Self> {
        // Tests have groups beside each other.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("proftop-memory-{}-{number}", std::process::id());
        // Version 1 of control groups, and version 2.
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        for (root, limit) in kinds {
            let group = Path::new(root).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let group = Self(group);
            // Swap would take what has no room. Version 1 has no file of this name.
            _ = fs::write(group.0.join("memory.swap.max"), "0");
            if fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip("no control group can be given a bound of memory");
        None
    }

    /// Moves a process into the group: it gets no memory beyond what it has and the group's size.
    /// Does nothing if it has ended.
    pub fn add(&self, pid: u32) {
        let added = fs::write(self.0.join("cgroup.procs"), pid.to_string());
        let has_ended = !Path::new("/proc").join(pid.to_string()).exists();
        assert!(added.is_ok() || has_ended, "{pid}: {added:?}");
    }

    /// Returns how many processes the kernel has ended because the group had no memory left.
    pub fn ended(&self) -> usize {
        // Version 1 of control groups, and version 2.
        let told = ["memory.oom_control", "memory.events"]
            .iter()
            .find_map(|name| fs::read_to_string(self.0.join(name)).ok());
        let told = told.expect("one of them is there");
        let count = told.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count
            .and_then(|count| count.parse().ok())
            .expect("a number")
    }

    /// Makes the command start inside of the group.
    pub fn holds(&self, command: &mut Command) {
        let members = fs::File::options()
            .write(true)
            .open(self.0.join("cgroup.procs"))
            .expect("it is ours");
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(move || std::io::Write::write_all(&mut &members, b"0"));
        }
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}
