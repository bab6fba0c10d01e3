//! Work of several users that waits for a thread.

use super::{Turns, may_have_more};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Work that waits. Each user's is done in the order in which it came; whose is next is
/// told by the time that theirs has taken.
#[derive(Debug)]
pub struct FairQueue<T> {
    by_user: BTreeMap<u32, VecDeque<T>>,
    turns: Turns,
    waiting: usize,
    max: usize,
}

impl<T> FairQueue<T> {
    /// Of at most so much work.
    pub fn new(max: usize) -> Self {
        Self {
            by_user: BTreeMap::new(),
            turns: Turns::default(),
            waiting: 0,
            max,
        }
    }

    /// Adds work of a user; false if this user has a share waiting already, and no more
    /// room is left than others may want.
    pub fn push(&mut self, user: u32, work: T) -> bool {
        let own = self.by_user.get(&user).map_or(0, VecDeque::len);
        if !may_have_more(own, self.waiting, self.max) {
            return false;
        }
        self.by_user.entry(user).or_default().push_back(work);
        self.waiting += 1;
        true
    }

    /// The next work, of a user who may have some done now, and who that is.
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

    /// Work of a user took so long.
    pub fn took(&mut self, user: u32, time: Duration, now: Instant) {
        self.turns.took(user, time, now);
    }

    /// How much waits.
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
