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
        // Each state of the standard library's hash is random.
        let drawn = RandomState::new().hash_one(self.failures) >> 32;
        let jitter = bound.mul_f64(drawn as f64 / f64::from(u32::MAX));
        match asked {
            // Clients that got the same time from a server would otherwise come at the same moment.
            Some(asked) => asked + jitter.min(FIRST),
            None => jitter,
        }
    }

    /// Resets the count after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
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
        let asked = Backoff::default().next(Some(Duration::from_secs(30)));
        assert!((30.0..=31.0).contains(&asked.as_secs_f64()), "{asked:?}");
    }
}
