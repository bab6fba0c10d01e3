//! A queue of several users' work for a thread.

use super::{Turns, may_have_more};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Work that waits. Each user's work is done in the order in which it came; the next user is the
/// one whose work has taken the least time.
#[derive(Debug)]
pub struct FairQueue<T> {
    by_user: BTreeMap<u32, VecDeque<T>>,
    turns: Turns,
    waiting: usize,
    max: usize,
}

impl<T> FairQueue<T> {
    /// Makes a queue for at most `max` pieces of work.
    pub fn new(max: usize) -> Self {
        Self {
            by_user: BTreeMap::new(),
            turns: Turns::default(),
            waiting: 0,
            max,
        }
    }

    /// Adds work of a user. Returns false if this user already has a share waiting, and the
    /// remaining room is reserved for others.
    pub fn push(&mut self, user: u32, work: T) -> bool {
        let own = self.by_user.get(&user).map_or(0, VecDeque::len);
        if !may_have_more(own, self.waiting, self.max) {
            return false;
        }
        self.by_user.entry(user).or_default().push_back(work);
        self.waiting += 1;
        true
    }

    /// Returns the next work of a user for whom `may` returns true, and that user.
    pub fn pop(&mut self, may: impl Fn(u32) -> bool, now: Instant) -> Option<(u32, T)> {
        let users = self.by_user.keys().copied().filter(|user| may(*user));
        let user = self.turns.next(users, now)?;
        let work = self.by_user.get_mut(&user)?;
        let next = work.pop_front();
        if work.is_empty() {
            self.by_user.remove(&user);
        }
        self.waiting -= usize::from(next.is_some());
        next.map(|next| (user, next))
    }

    /// Records the time that work of a user took.
    pub fn took(&mut self, user: u32, time: Duration, now: Instant) {
        self.turns.took(user, time, now);
    }

    /// Returns the number of waiting pieces of work.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_fills_it_and_slow_work_waits_for_others() {
        let mut queue = FairQueue::new(80);
        let taken = (0..100).filter(|work| queue.push(1, *work)).count();
        assert_eq!((taken, queue.waiting()), (70, 70));
        assert!(queue.push(2, 1_000) && queue.push(2, 1_001));
        let now = Instant::now();
        let anybody = |_| true;
        assert_eq!(queue.pop(anybody, now), Some((1, 0)));
        queue.took(1, Duration::from_secs(1), now);
        assert_eq!(queue.pop(anybody, now), Some((2, 1_000)));
        queue.took(2, Duration::from_millis(1), now);
        assert_eq!(queue.pop(|user| user != 2, now), Some((1, 1)));
        assert_eq!(queue.pop(anybody, now), Some((2, 1_001)));
        let rest = std::iter::from_fn(|| queue.pop(anybody, now)).count();
        assert_eq!((rest, queue.waiting()), (68, 0));
    }
}
