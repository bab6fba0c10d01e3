//! Computes how long to wait before a retry: *full jitter*, a random time up to a limit that
//! doubles, from 1 s to 5 min. Machines that have lost a server together then come back one by one.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(300);

/// Counts successive failures.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns how long to wait after one more failure; at least as long as the server has
    /// requested.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let bound = LAST.min(FIRST.saturating_mul(1 << self.failures.min(16)));
        self.failures += 1;
        match asked {
            // Clients that got the same time from a server would otherwise come at the same moment,
            // and the longer it is, the more of them wait for it.
            Some(asked) => asked + bound.max(asked.min(LAST)).mul_f64(random()),
            None => bound.mul_f64(random()),
        }
    }

    /// Resets the count after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Returns a random number from 0 to 1.
pub fn random() -> f64 {
    // Each state of the standard library's hash is random.
    let drawn = RandomState::new().hash_one(0) >> 32;
    drawn as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_five_minutes_and_differ() {
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            let mut backoff = Backoff::default();
            let waits: Vec<Duration> = (0..14).map(|_| backoff.next(None)).collect();
            for (failures, wait) in waits.iter().enumerate() {
                assert!(*wait <= LAST.min(FIRST * (1 << failures)), "{waits:?}");
            }
            longest = longest.max(waits[13]);
        }
        assert!(longest > LAST / 2, "{longest:?}");
    }

    #[test]
    fn hosts_that_were_asked_to_wait_come_after_it_and_not_together() {
        let wait = |seconds| Backoff::default().next(Some(Duration::from_secs(seconds)));
        for (asked, most) in [(0, 1), (1, 2), (30, 60), (3600, 3900)] {
            let waits: Vec<f64> = (0..200).map(|_| wait(asked).as_secs_f64()).collect();
            let (asked, most) = (f64::from(asked as u32), f64::from(most));
            let is_within = |it: &f64| (asked..=most).contains(it);
            assert!(waits.iter().all(is_within), "{waits:?}");
            let is_late = |it: &f64| *it > asked + (most - asked) / 2.0;
            assert!(waits.iter().any(is_late), "{waits:?}");
        }
    }
}
