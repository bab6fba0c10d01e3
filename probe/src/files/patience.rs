//! Computes how long a thread waits for successive answers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Minimum time to wait: with less, a busy machine would look like a dead server.
const LEAST: Duration = Duration::from_millis(100);

/// The fraction (one in 20) of the time that may be spent waiting in vain.
const SHARE: u32 = 20;

/// A budget of time to wait, which is used up by requests without an answer.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    left: Duration,
    since: Instant,
}

impl Patience {
    /// Starts with a full budget, `most` for an answer.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            left: most,
            since: Instant::now(),
        }
    }

    /// Returns the time to wait for the next answer.
    pub fn next(&mut self, now: Instant) -> Duration {
        let regained = now.saturating_duration_since(self.since) / SHARE;
        self.since = now;
        self.left = (self.left + regained).min(self.most);
        self.left.max(LEAST.min(self.most))
    }

    /// Takes the time of a request without an answer off the budget.
    pub fn waited_in_vain(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

/// An answer within this time costs nothing: on a busy machine a reader may have to wait for a CPU.
const PROMPT: Duration = Duration::from_millis(5);

/// The fraction (one in 8) of the time that the processes of one user may keep a thread waiting,
/// whether they answer in the end or not.
const SHARE_OF_USER: u32 = 8;

/// Budgets for each user, for requests that may wait for that user's processes. Only users who have
/// used up some of theirs have an entry.
#[derive(Debug)]
pub struct PatienceByUser {
    most: Duration,
    used: HashMap<u32, (Duration, Instant)>,
}

impl PatienceByUser {
    /// Starts with full budgets, `most` for an answer.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            used: HashMap::new(),
        }
    }

    /// Whether any user's processes caused delays recently, so that the owner of a process matters.
    pub fn is_strained(&self) -> bool {
        !self.used.is_empty()
    }

    /// Returns the time to wait for the next answer that a user's process may delay; `None` if that
    /// user's processes are not waited for now.
    pub fn next(&mut self, user: u32, now: Instant) -> Option<Duration> {
        let most = self.most;
        self.used.retain(|_, (used, since)| {
            let regained = now.saturating_duration_since(*since) / SHARE_OF_USER;
            (*used, *since) = (used.saturating_sub(regained), now);
            !used.is_zero()
        });
        let used = self
            .used
            .get(&user)
            .map_or(Duration::ZERO, |(used, _)| *used);
        let left = most.saturating_sub(used);
        (left >= LEAST.min(most)).then_some(left)
    }

    /// Whether an answer that took this long is charged to the user.
    pub fn is_long(time: Duration) -> bool {
        time > PROMPT
    }

    /// Charges the time of an answer that a user's process could delay, whether it came or not.
    pub fn waited(&mut self, user: u32, time: Duration, now: Instant) {
        let (used, _) = self.used.entry(user).or_insert((Duration::ZERO, now));
        *used += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_is_waited_for_an_eighth_of_the_time_and_others_are_not_blamed() {
        let mut patience = PatienceByUser::new(Duration::from_millis(700));
        let (mut now, begin) = (Instant::now(), Instant::now());
        let mut waited = Duration::ZERO;
        // The answers are slow, but arrive.
        while now - begin < Duration::from_secs(80) {
            assert_eq!(patience.next(8, now), Some(Duration::from_millis(700)));
            let took = match patience.next(7, now) {
                Some(time) => time.min(Duration::from_millis(90)),
                None => Duration::ZERO,
            };
            if PatienceByUser::is_long(took) {
                patience.waited(7, took, now);
            }
            waited += took;
            now += took + Duration::from_millis(10);
        }
        assert!(waited < Duration::from_secs(11), "{waited:?}");
        assert!(waited > Duration::from_secs(9), "{waited:?}");
        now += Duration::from_secs(60);
        assert!(patience.next(7, now).is_some());
        assert!(!patience.is_strained());
    }

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
