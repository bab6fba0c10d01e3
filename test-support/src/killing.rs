//! Kills processes while a test has them work.

use crate::{DEADLINE, Random};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pauses between kills do not become longer than this: some processes are always killed within
/// [`DEADLINE`].
const PAUSE_MAX: Duration = Duration::from_secs(DEADLINE.as_secs() / 10);

/// The result of work whose processes were killed.
#[derive(Debug)]
pub struct WhileKilled {
    /// Number of times the work was done.
    pub whole: usize,
    /// Number of times it was refused.
    pub refused: usize,
    /// Number of killed processes that had given up their rights by then.
    pub confined: usize,
}

/// What the thread that kills shares with the one that works.
struct Killer<P> {
    processes: P,
    killed: AtomicUsize,
    longest_pause_us: AtomicU64,
}

/// Does work again and again until this number of its processes was killed.
///
/// `work` returns whether it was done (true) or refused (false). Meanwhile all `processes` are
/// killed, whatever they do, after pauses of up to `longest_pause`, which is doubled after each
/// refusal: some work is done, however busy the machine becomes.
///
/// Fails if there is no process to kill within [`DEADLINE`], and if a process has a filter of
/// system calls but still has capabilities or can get new privileges.
pub fn work_while_killed(
    at_least: usize,
    longest_pause: Duration,
    processes: impl Fn() -> Vec<u32> + Sync,
    mut work: impl FnMut() -> bool,
) -> WhileKilled {
    let killer = &Killer {
        processes,
        killed: AtomicUsize::new(0),
        longest_pause_us: AtomicU64::new(longest_pause.min(PAUSE_MAX).as_micros() as u64),
    };
    let (mut whole, mut refused) = (0, 0);
    let confined = thread::scope(|scope| {
        // The thread ends when `running` is dropped. That happens also if the work panics: the
        // scope waits for the thread.
        let (running, is_over) = channel();
        let thread = scope.spawn(move || killer.kill(&is_over));
        let (mut killed_before, mut end) = (0, Instant::now() + DEADLINE);
        // The thread has failed if it ends by itself.
        while !thread.is_finished() {
            let killed = killer.killed.load(Ordering::Relaxed);
            if killed >= at_least {
                break;
            }
            if killed > killed_before {
                (killed_before, end) = (killed, Instant::now() + DEADLINE);
            }
            assert!(Instant::now() < end, "no process to kill");
            if work() {
                whole += 1;
            } else {
                refused += 1;
                killer.double_pauses();
            }
        }
        drop(running);
        thread.join().expect("all that is seen is confined")
    });
    WhileKilled {
        whole,
        refused,
        confined,
    }
}

impl<P: Fn() -> Vec<u32>> Killer<P> {
    /// Kills processes until the other end of `is_over` is dropped. Returns how many of them had
    /// given up their rights by then.
    fn kill(&self, is_over: &Receiver<()>) -> usize {
        let (mut random, mut confined) = (Random::new(7), 0);
        // A process that was killed is listed until its parent has waited for it.
        let mut are_killed = BTreeSet::new();
        loop {
            let pause = random.below(self.longest_pause_us.load(Ordering::Relaxed));
            let ended = is_over.recv_timeout(Duration::from_micros(pause));
            if ended != Err(RecvTimeoutError::Timeout) {
                return confined;
            }
            for process in (self.processes)() {
                if !are_killed.insert(process) {
                    continue;
                }
                confined += usize::from(is_confined(process));
                let pid = Pid::from_raw(process.cast_signed()).expect("a process");
                let is_ended = kill_process(pid, Signal::KILL).is_ok();
                self.killed
                    .fetch_add(usize::from(is_ended), Ordering::Relaxed);
            }
        }
    }

    fn double_pauses(&self) {
        let longest_us = 2 * self.longest_pause_us.load(Ordering::Relaxed);
        let longest_us = longest_us.min(PAUSE_MAX.as_micros() as u64);
        self.longest_pause_us.store(longest_us, Ordering::Relaxed);
    }
}

/// Returns whether a process has given up its rights. The filter of system calls is the last step:
/// fails if a process has one, and still has capabilities or can get new privileges.
fn is_confined(pid: u32) -> bool {
    let read = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_filtered = |status: &str| status.contains("Seccomp:\t2");
    // Read twice: the kernel writes the line of the filter after those of capabilities, and the
    // process may give up its rights between them.
    if !is_filtered(&read()) {
        return false;
    }
    let status = read();
    if !is_filtered(&status) {
        return false;
    }
    assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn some_work_is_done_however_long_it_takes() {
        let pid = AtomicU32::new(0);
        let processes = || match pid.load(Ordering::Relaxed) {
            0 => Vec::new(),
            pid => vec![pid],
        };
        let work = || {
            let mut sleeping = Process::start(Command::new("sleep").arg("0.02"));
            pid.store(sleeping.pid(), Ordering::Relaxed);
            let is_done = sleeping.wait().expect("ours").success();
            pid.store(0, Ordering::Relaxed);
            is_done
        };
        // At first no process lives long enough.
        let result = work_while_killed(12, Duration::from_millis(1), processes, work);
        assert!(result.whole > 0 && result.refused > 0, "{result:?}");
        assert_eq!(result.confined, 0);
    }

    #[test]
    fn it_ends_when_the_work_panics() {
        let work = || panic!("as a test that fails");
        let result = catch_unwind(AssertUnwindSafe(|| {
            work_while_killed(1, Duration::from_millis(1), Vec::new, work)
        }));
        assert!(result.is_err());
    }
}
