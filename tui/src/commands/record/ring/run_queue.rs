//! How long runnable threads wait for a CPU, as the kernel counts it for each CPU in
//! `/proc/schedstat` (Documentation/scheduler/sched-stats.rst; with `CONFIG_SCHEDSTATS`).
//!
//! A wait is counted when it ends, which is when a CPU takes the thread. So a starving thread adds
//! nothing until it runs, and then all of its waiting time at once.

use std::fs;
use std::iter::Sum;

/// The indexes of the used words in the line of a CPU. Word 0 is its name, such as `cpu3`.
const WAITED_NS: usize = 8;
const TURNS: usize = 9;

/// Waits for CPUs that have ended, since boot or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// The sum of all waits.
    pub waited_ns: u64,
    /// How often a CPU took a thread.
    pub turns: u64,
}

impl RunQueue {
    /// Returns the waits between an earlier reading and this one. When a CPU is switched off, its
    /// counts are missing from the sum; if that makes the difference negative, it counts as 0.
    pub fn since(self, before: Self) -> Self {
        let turns = self.turns.checked_sub(before.turns);
        let waited_ns = self.waited_ns.checked_sub(before.waited_ns);
        match (turns, waited_ns) {
            (Some(turns), Some(waited_ns)) => Self { waited_ns, turns },
            _ => Self::default(),
        }
    }

    /// Returns the mean wait in milliseconds. Waits of threads that were taken at once are
    /// included. 0 if no thread ran.
    pub fn mean_ms(self) -> f64 {
        self.waited_ns as f64 / 1e6 / self.turns.max(1) as f64
    }
}

impl Sum for RunQueue {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            waited_ns: sum.waited_ns.saturating_add(one.waited_ns),
            turns: sum.turns.saturating_add(one.turns),
        })
    }
}

/// Returns the waits since boot on all CPUs. None if the kernel does not count them.
pub fn total() -> Option<RunQueue> {
    parse(&fs::read_to_string("/proc/schedstat").ok()?)
}

/// Adds up the lines of CPUs, and ignores those of scheduling domains. The used words are the same
/// in versions 15 to 17 of the file (Linux 2.6.30 to 7.2).
fn parse(text: &str) -> Option<RunQueue> {
    let mut cpus = text
        .lines()
        .filter(|line| line.starts_with("cpu"))
        .peekable();
    cpus.peek()?;
    cpus.map(|line| {
        let mut words = line.split_ascii_whitespace().skip(WAITED_NS);
        let waited_ns = words.next()?.parse().ok()?;
        let turns = words.nth(TURNS - WAITED_NS - 1)?.parse().ok()?;
        Some(RunQueue { waited_ns, turns })
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_all_cpus_are_added() {
        let text = "version 15\ntimestamp 4295937296\n\
                    cpu0 0 0 0 0 0 0 35000000000 4000000 30\n\
                    domain0 3 1 2 3 4 5 6 7 8 9 10\n\
                    cpu1 0 0 0 0 0 0 1000000 2000000 70\n";
        let all = parse(text).unwrap();
        let (waited_ns, turns) = (6_000_000, 100);
        assert_eq!(all, RunQueue { waited_ns, turns });
        assert_eq!(all.mean_ms(), 0.06);
    }

    #[test]
    fn what_is_no_such_file_counts_nothing() {
        for text in ["", "version 15\n", "cpu0 1 2 3", "cpu0 0 0 0 0 0 0 1 x 3"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_cpu_that_goes_makes_no_wait() {
        let before = RunQueue {
            waited_ns: 900,
            turns: 40,
        };
        let one_less = RunQueue {
            waited_ns: 500,
            turns: 30,
        };
        assert_eq!(one_less.since(before), RunQueue::default());
        assert_eq!(RunQueue::default().mean_ms(), 0.0);
    }
}
