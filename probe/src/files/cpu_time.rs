//! The CPU time that readers have used. It is part of proftop's own cost.

use std::collections::HashMap;
use std::time::Duration;

/// The CPU time of processes that come and go.
#[derive(Debug, Default)]
pub struct CpuTimes {
    /// CPU time of processes that were not ended by proftop, as last read, by pid.
    alive: HashMap<u32, Duration>,
    /// Sum of the CPU time of processes that were ended.
    ended: Duration,
}

impl CpuTimes {
    /// Adds a process that was just forked.
    pub fn add(&mut self, pid: u32) {
        self.alive.insert(pid, Duration::ZERO);
    }

    /// Iterates over the processes that were not ended by proftop.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.alive.keys().copied()
    }

    /// Removes a process that is about to be killed; what it has used so far still counts.
    pub fn end(&mut self, pid: u32) {
        if let Some(last) = self.alive.remove(&pid) {
            self.ended += of_process(pid).unwrap_or(last);
        }
    }

    /// Returns the CPU time of all of them. It never decreases.
    pub fn sum(&mut self) -> Duration {
        for (pid, time) in &mut self.alive {
            // The last value of a process that ended by itself is kept.
            if let Some(now) = of_process(*pid) {
                *time = now.max(*time);
            }
        }
        self.ended + self.alive.values().sum::<Duration>()
    }
}

/// Returns the CPU time of all threads of a process; `None` if there is no such process.
pub fn of_process(pid: u32) -> Option<Duration> {
    let pid = i32::try_from(pid).ok()?;
    let mut clock = 0;
    // SAFETY: `clock` is written to, and nothing else.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is written to, and nothing else.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    Some(Duration::new(
        time.tv_sec.try_into().ok()?,
        time.tv_nsec.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_a_process_has_used_counts_after_its_end() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let mut busy = command.stdin(Stdio::null()).spawn().expect("a shell");
        let mut times = CpuTimes::default();
        times.add(busy.id());
        let wanted = Duration::from_millis(20);
        test_support::wait_until("it has worked", || times.sum() >= wanted);
        let before = times.sum();
        times.end(busy.id());
        busy.kill().expect("ours");
        busy.wait().expect("ours");
        assert!(times.sum() >= before);
        // A process that ends by itself keeps the last value that was read.
        let mut short = Command::new("true").spawn().expect("a program");
        times.add(short.id());
        let before = times.sum();
        short.wait().expect("ours");
        assert!(times.sum() >= before);
        assert_eq!(of_process(short.id()), None);
    }
}
