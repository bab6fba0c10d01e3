//! Reads the processes that were there before us, a few at a time, so that the
//! first samples need not wait for the last process.

use crate::process::ProcessTable;
use crate::targets::Targets;
use std::fs;
use std::time::{Duration, Instant};

/// How long one step may take: less than what a person sees.
const STEP: Duration = Duration::from_millis(20);

/// The scan of /proc at the start.
#[derive(Debug)]
pub struct StartupScan {
    left: Vec<u32>,
}

impl StartupScan {
    /// Lists the processes that there are.
    pub fn new() -> Self {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Self { left: Vec::new() };
        };
        let left = entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        Self { left }
    }

    /// Reads some more. True as long as there are some left.
    pub fn step(
        &mut self,
        processes: &mut ProcessTable,
        targets: &mut Targets,
        now_ns: u64,
    ) -> bool {
        let begin = Instant::now();
        while let Some(pid) = self.left.pop() {
            if !processes.is_known(pid) {
                processes.scan(pid, now_ns);
                if let Some(comm) = processes.comm_of(pid) {
                    targets.judge_process(pid, comm.as_bytes());
                }
            }
            if begin.elapsed() > STEP {
                break;
            }
        }
        !self.left.is_empty()
    }
}
