//! How long threads that can run wait for a CPU, as the kernel counts it for each CPU in
//! `/proc/schedstat` (Documentation/scheduler/sched-stats.rst; with `CONFIG_SCHEDSTATS`).
//!
//! A wait is counted when it ends: when a CPU takes the thread. So a thread that starves adds
//! nothing until it runs, and then all of it at once.

use std::fs;
use std::iter::Sum;

/// The words of a CPU's line that count here, from 0: `cpu3` is the first.
const WAITED_NS: usize = 8;
const TURNS: usize = 9;

/// Waits for CPUs that have ended: since the machine started, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunQueue {
    /// All waits together.
    pub waited_ns: u64,
    /// How often a CPU took a thread.
    pub turns: u64,
}

impl RunQueue {
    /// What was counted after an earlier reading. A CPU that was switched off takes its counts
    /// with it: then it is nothing.
    pub fn since(self, before: Self) -> Self {
        let turns = self.turns.checked_sub(before.turns);
        let waited_ns = self.waited_ns.checked_sub(before.waited_ns);
        match (turns, waited_ns) {
            (Some(turns), Some(waited_ns)) => Self { waited_ns, turns },
            _ => Self::default(),
        }
    }

    /// How long a wait was in the mean, in milliseconds; those of threads that were taken at once
    /// are among them. 0 if nothing ran.
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

/// What was counted since the machine started, on all CPUs; `None` where the kernel does not
/// count it.
pub fn total() -> Option<RunQueue> {
    parse(&fs::read_to_string("/proc/schedstat").ok()?)
}

/// Adds up the lines of CPUs; others are of scheduling domains. They are the same in the versions
/// 15 to 17 of the file (Linux 2.6.30 to 7.2).
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
