//! How much is read of the mappings of each user's processes.
//!
//! The sampler waits while it reads a process. One that maps tens of thousands of files takes tens of
//! milliseconds, and several times as long on a busy machine; meanwhile the ring fills with the
//! samples of everybody else.

use crate::shares::ROOT;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of lines that are read of one user's processes at once: more than a thousand usual
/// programs have.
const LINES_MAX: u64 = 32_768;

/// And how many more are read in each second: of the largest processes they take the kernel 40 ms.
const LINES_A_SECOND: u64 = 16_384;

/// How long a turn of the sampler may take to read one user's processes, as each may delay it. The
/// rest is read in the next turn.
const IN_TURN: Duration = Duration::from_millis(100);

/// What was read of the processes of each user.
#[derive(Debug, Default)]
pub struct Scans {
    by_user: HashMap<u32, Read>,
}

/// What was read of one user's processes.
#[derive(Debug, Default)]
struct Read {
    /// The lines, less those that may be read in the time since.
    lines: u64,
    at_ns: u64,
    in_turn: Duration,
}

impl Read {
    /// Returns how many lines count at that time.
    fn lines(&self, now_ns: u64) -> u64 {
        let passed_ns = u128::from(now_ns.saturating_sub(self.at_ns));
        let forgiven = passed_ns * u128::from(LINES_A_SECOND) / 1_000_000_000;
        let forgiven = u64::try_from(forgiven).unwrap_or(u64::MAX);
        self.lines.saturating_sub(forgiven)
    }
}

impl Scans {
    /// Begins a turn of the sampler.
    pub fn begin_turn(&mut self, now_ns: u64) {
        self.by_user.retain(|_, read| {
            read.in_turn = Duration::ZERO;
            read.lines(now_ns) > 0
        });
    }

    /// Whether there is a user of whom nothing more may be read now.
    pub fn is_any_over(&self, now_ns: u64) -> bool {
        self.by_user
            .keys()
            .any(|user| !self.may_read(*user, now_ns))
    }

    /// Whether a process of that user may be read now.
    pub fn may_read(&self, user: u32, now_ns: u64) -> bool {
        let read = self.by_user.get(&user);
        let is_over = |read: &Read| read.in_turn > IN_TURN || read.lines(now_ns) > LINES_MAX;
        user == ROOT || !read.is_some_and(is_over)
    }

    /// Records that a process of that user was read.
    pub fn took(&mut self, user: u32, lines: u64, time: Duration, now_ns: u64) {
        let read = self.by_user.entry(user).or_default();
        read.lines = read.lines(now_ns).saturating_add(lines);
        read.at_ns = now_ns;
        read.in_turn += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1000;
    const SECOND: u64 = 1_000_000_000;

    fn may_read(scans: &Scans, user: u32, now_ns: u64) -> bool {
        let may = scans.may_read(user, now_ns);
        assert_eq!(scans.is_any_over(now_ns), !scans.may_read(USER, now_ns));
        may
    }

    #[test]
    fn of_processes_with_very_many_mappings_one_is_read_a_second() {
        let mut scans = Scans::default();
        let mut read = Vec::new();
        for tenth in 0..100 {
            let now_ns = tenth * SECOND / 10;
            scans.begin_turn(now_ns);
            if may_read(&scans, USER, now_ns) {
                scans.took(USER, 16_385, Duration::ZERO, now_ns);
                read.push(tenth);
            }
            assert!(may_read(&scans, USER + 1, now_ns));
            assert!(may_read(&scans, ROOT, now_ns));
        }
        assert_eq!(read, [0, 1, 2, 11, 21, 31, 41, 51, 61, 71, 81, 91]);
    }

    #[test]
    fn a_turn_ends_what_takes_long_and_the_next_goes_on() {
        let mut scans = Scans::default();
        scans.took(USER, 1, IN_TURN, 0);
        assert!(may_read(&scans, USER, 0));
        scans.took(USER, 1, IN_TURN, 0);
        assert!(!may_read(&scans, USER, 0));
        scans.took(ROOT, u64::MAX, IN_TURN * 9, 0);
        assert!(may_read(&scans, ROOT, 0));
        scans.begin_turn(1);
        assert!(may_read(&scans, USER, 1));
    }
}
