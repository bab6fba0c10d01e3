//! A control group that is removed at the end of the test.

use std::fs;
use std::path::PathBuf;
use test_support::{skip, wait_until};

pub struct Group(PathBuf);

impl Group {
    /// Makes a group. Returns None if that is not possible, and prints why.
    pub fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let unified = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(fields[1]))
        });
        let path = unified.map(|it| it.join(format!("{name}-{}", std::process::id())));
        let made = path.filter(|path| fs::create_dir(path).is_ok());
        if made.is_none() {
            skip("needs a writable cgroup2 hierarchy");
        }
        made.map(Self)
    }

    pub fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("it lives");
    }

    /// Returns the group's name as the option `-g` takes it.
    pub fn name(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}
