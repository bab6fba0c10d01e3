//! Waits for the answer of one of proftop's processes, which may itself have to wait for a CPU.
//!
//! A missing answer says something about a file system only if the process has had a CPU. On a
//! machine with many more running threads than CPUs that can take seconds. The kernel reports
//! "ready to run" as a state of its own.

use super::socket::Inbox;
use crate::proc_stat;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// A process that was ready to run is checked again after this fraction (a quarter) of the time for
/// an answer.
const LOOKS: u32 = 4;

/// How much longer than usual to wait for a process that gets no CPU.
pub const MORE: Duration = Duration::from_secs(4);

/// The deadlines of waiting for an answer.
#[derive(Debug)]
pub struct Waiting {
    until: Instant,
    /// The last deadline, whatever the process waits for.
    most: Instant,
    look_every: Duration,
}

/// Reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The process waits for something other than a CPU.
    Silent,
    /// The process is ready to run, and has had no CPU.
    Starved,
    /// The process has ended.
    Gone,
}

impl Waiting {
    /// Waits for `time`, and up to `more` beyond that while the process is ready to run.
    pub fn new(time: Duration, more: Duration) -> Self {
        let until = Instant::now() + time;
        Self {
            until,
            most: until + more,
            look_every: time / LOOKS,
        }
    }

    /// Whether the last deadline has passed.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.most
    }

    /// Waits for the next message of a process.
    pub fn receive(
        &mut self,
        inbox: &mut Inbox,
        socket: impl AsFd + Copy,
        pid: u32,
    ) -> Result<(Vec<u8>, Vec<OwnedFd>), NoAnswer> {
        let mut receive = |until| match inbox.receive(socket, Some(until)) {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(_) => Err(NoAnswer::Gone),
        };
        loop {
            if let Some(message) = receive(self.until)? {
                return Ok(message);
            }
            let is_ready = is_ready_to_run(pid);
            let now = Instant::now();
            // It may have answered just before the check.
            if let Some(message) = receive(now)? {
                return Ok(message);
            }
            if !is_ready {
                return Err(NoAnswer::Silent);
            }
            if now >= self.most {
                return Err(NoAnswer::Starved);
            }
            self.until = (now + self.look_every).min(self.most);
        }
    }
}

/// Whether a process with a single thread, as all of these have, runs or is ready to run.
fn is_ready_to_run(pid: u32) -> bool {
    proc_stat::is_ready_to_run(pid, pid)
}

#[cfg(test)]
mod tests {
    use super::super::socket::send;
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use test_support::Process;

    const SHORT: Duration = Duration::from_millis(8);

    #[test]
    fn who_sleeps_is_silent_and_who_could_run_is_waited_for() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let mut inbox = Inbox::default();
        let sleeps = Process::start(Command::new("sleep").arg("1000"));
        test_support::wait_until("it sleeps", || !is_ready_to_run(sleeps.pid()));
        let far = Duration::from_secs(1000);
        let silent = Waiting::new(SHORT, far).receive(&mut inbox, &other, sleeps.pid());
        assert_eq!(silent.err(), Some(NoAnswer::Silent));

        let runs = Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
        test_support::wait_until("it runs", || is_ready_to_run(runs.pid()));
        let starved = Waiting::new(SHORT, SHORT).receive(&mut inbox, &other, runs.pid());
        assert_eq!(starved.err(), Some(NoAnswer::Starved));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(10 * SHORT);
                send(&one, b"late", &[]).expect("sent");
            });
            let answer = Waiting::new(SHORT, far).receive(&mut inbox, &other, runs.pid());
            assert_eq!(answer.expect("it came").0, b"late");
        });
        drop(one);
        let gone = Waiting::new(SHORT, far).receive(&mut inbox, &other, runs.pid());
        assert_eq!(gone.err(), Some(NoAnswer::Gone));
    }
}
