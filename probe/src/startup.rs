//! Reads the processes that exist at the start, a few at a time, so that the first samples need not
//! wait for the last process.

use crate::process::ProcessTable;
use crate::targets::Targets;
use std::fs;
use std::time::{Duration, Instant};

/// Maximum time of one step: less than a person notices.
const STEP: Duration = Duration::from_millis(20);

/// The scan of /proc at the start.
#[derive(Debug)]
pub struct StartupScan {
    left: Vec<u32>,
}

impl StartupScan {
    /// Lists the existing processes.
    pub fn new() -> Self {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Self { left: Vec::new() };
        };
        let left = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        Self { left }
    }

    /// Reads some more of those that may be wanted, and returns which. The others are read if they
    /// are sampled later.
    pub fn step(
        &mut self,
        processes: &mut ProcessTable,
        targets: &mut Targets,
        now_ns: u64,
    ) -> Vec<u32> {
        let begin = Instant::now();
        let mut read = Vec::new();
        while let Some(pid) = self.left.pop() {
            if !processes.is_known(pid) && targets.may_want(pid) {
                processes.read_existing(pid, now_ns);
                read.push(pid);
                if let Some(comm) = processes.comm_of(pid) {
                    targets.judge_process(pid, comm.as_bytes());
                }
            }
            if begin.elapsed() > STEP {
                break;
            }
        }
        read
    }

    /// Whether all have been read.
    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}
