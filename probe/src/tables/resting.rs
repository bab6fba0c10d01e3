//! Things that were freed, but rest until no reader can be using them: a sample that began before
//! still may.

use std::collections::VecDeque;

/// How long things rest: longer than any sample takes.
pub const REST_NS: u64 = 1_000_000_000;

/// The resting things, in the order in which they were freed.
#[derive(Debug)]
pub struct Resting<T> {
    since: VecDeque<(u64, T)>,
}

impl<T> Resting<T> {
    /// Starts without any.
    pub fn new() -> Self {
        Self {
            since: VecDeque::new(),
        }
    }

    /// Adds a thing, which rests from now on.
    pub fn push(&mut self, thing: T, now_ns: u64) {
        // A clock that steps back must not shorten a rest.
        let before = self.since.back().map_or(0, |(since, _)| *since);
        self.since.push_back((now_ns.max(before), thing));
    }

    /// Returns the next thing that has rested long enough.
    pub fn pop(&mut self, now_ns: u64) -> Option<T> {
        let (since, _) = self.since.front()?;
        if now_ns.saturating_sub(*since) < REST_NS {
            return None;
        }
        self.since.pop_front().map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_passes_first() {
        let mut resting = Resting::new();
        resting.push('a', 10);
        resting.push('b', 20);
        assert_eq!(resting.pop(REST_NS + 9), None);
        assert_eq!(resting.pop(REST_NS + 10), Some('a'));
        assert_eq!(resting.pop(REST_NS + 19), None);
        assert_eq!(resting.pop(REST_NS + 20), Some('b'));
        assert_eq!(resting.pop(u64::MAX), None);
    }

    #[test]
    fn a_clock_that_steps_back_shortens_nothing() {
        let mut resting = Resting::new();
        resting.push('a', 500);
        resting.push('b', 0);
        assert_eq!(resting.pop(REST_NS + 500), Some('a'));
        assert_eq!(resting.pop(REST_NS + 499), None);
        assert_eq!(resting.pop(REST_NS + 500), Some('b'));
    }
}
