//! How long a thread waits for answers, one after the other.

use std::time::{Duration, Instant};

/// Below, a busy machine would look like a dead server.
const LEAST: Duration = Duration::from_millis(100);

/// The part of the time that may be spent waiting in vain.
const SHARE: u32 = 20;

/// Time to wait, used up by what did not answer.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    left: Duration,
    since: Instant,
}

impl Patience {
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            left: most,
            since: Instant::now(),
        }
    }

    /// For the next answer.
    pub fn next(&mut self, now: Instant) -> Duration {
        let regained = now.saturating_duration_since(self.since) / SHARE;
        self.since = now;
        self.left = (self.left + regained).min(self.most);
        self.left.max(LEAST.min(self.most))
    }

    pub fn waited_in_vain(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_do_not_answer_cost_little_more_than_one() {
        let mut patience = Patience::new(Duration::from_secs(1));
        let mut now = patience.since;
        let begin = now;
        for _ in 0..10 {
            let time = patience.next(now);
            patience.waited_in_vain(time);
            now += time;
        }
        assert!(now - begin < Duration::from_secs(2), "{:?}", now - begin);
        now += Duration::from_secs(60);
        assert_eq!(patience.next(now), Duration::from_secs(1));
    }
}
