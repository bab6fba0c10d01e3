//! Decides whose work is next: that of the user who has used the least time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time after which used time counts half.
const HALF_LIFE: Duration = Duration::from_secs(1);

/// Less used time than this is forgotten.
const LEAST: Duration = Duration::from_micros(10);

/// The time that each user has used recently.
#[derive(Debug)]
pub struct Turns {
    used: HashMap<u32, Duration>,
    halved: Instant,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            used: HashMap::new(),
            halved: Instant::now(),
        }
    }
}

impl Turns {
    /// Records the time that work for a user took.
    pub fn took(&mut self, user: u32, time: Duration, now: Instant) {
        self.fade(now);
        *self.used.entry(user).or_default() += time;
    }

    /// Returns the user among these who has used the least time; of equals the first.
    pub fn next(&mut self, users: impl Iterator<Item = u32>, now: Instant) -> Option<u32> {
        self.fade(now);
        users.min_by_key(|user| self.used.get(user).copied().unwrap_or_default())
    }

    fn fade(&mut self, now: Instant) {
        while now.saturating_duration_since(self.halved) >= HALF_LIFE {
            if self.used.is_empty() {
                self.halved = now;
                return;
            }
            self.halved += HALF_LIFE;
            self.used.retain(|_, used| {
                *used /= 2;
                *used >= LEAST
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_has_used_least_is_next_and_what_was_used_fades() {
        let mut turns = Turns::default();
        let begin = turns.halved;
        let next = |turns: &mut Turns, now| turns.next([7, 8].into_iter(), now);
        assert_eq!(next(&mut turns, begin), Some(7), "of equals the first");
        turns.took(7, 100 * MS, begin);
        assert_eq!(next(&mut turns, begin), Some(8));
        turns.took(8, 60 * MS, begin + HALF_LIFE);
        assert_eq!(
            next(&mut turns, begin + HALF_LIFE),
            Some(7),
            "50 ms are left"
        );
        turns.took(7, 100 * MS, begin + HALF_LIFE);
        let later = begin + 60 * HALF_LIFE;
        assert_eq!(next(&mut turns, later), Some(7));
        assert!(turns.used.is_empty());
        assert_eq!(turns.next(std::iter::empty(), later), None);
    }
}
