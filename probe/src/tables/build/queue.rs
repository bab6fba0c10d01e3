//! The files whose tables are requested, and those being built.

use super::{Content, Duty};
use crate::ids::ModuleId;
use crate::shares::Turns;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Maximum number of waiting files, each with an open descriptor. A machine runs some hundred.
const WAITING_MAX: usize = 4096;

/// A file whose table is requested.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its number.
    pub file: ModuleId,
    /// The source of its bytes.
    pub content: Content,
    /// Number of samples that would have needed it since the last request.
    pub hotness: u64,
    /// The user who controls the file's content.
    pub user: u32,
    /// The user who runs the process that has mapped it: it is built in that user's turn.
    pub wanted_by: u32,
}

/// The order of files: hotter is greater; of two equals the older one is.
type Rank = (u64, Reverse<u64>);

/// The files whose tables are to be built. Each user has a list, in which the hottest comes first;
/// the next user is the one whose tables have taken the least time. If a user runs a program that
/// maps very many files, even of others, all of them are built in that user's turns.
#[derive(Debug, Default)]
pub struct Queue {
    by_user: HashMap<u32, BTreeMap<Rank, Job>>,
    /// The lists in which a file is, and its rank in each.
    ranks: HashMap<ModuleId, Vec<(u32, Rank)>>,
    /// Number of entries in all lists.
    entries: usize,
    /// Files from when a thread takes one until its table is taken.
    building: HashMap<ModuleId, Duty>,
    turns: Turns,
    next: u64,
    /// Whether there is work that a waiting thread may not have seen.
    has_news: bool,
    is_closed: bool,
}

impl Queue {
    /// Adds a file to the list of a user, or makes it hotter if it is there already. Returns `None`
    /// for one that is being built, except if the slow thread has begun it and samples wait for it
    /// now. If there are too many files, the coldest file of the user with most is given up; it is
    /// returned if no other user waits for it.
    pub fn push(&mut self, job: Job) -> Option<ModuleId> {
        if self.heat(job.file, job.wanted_by, job.hotness) {
            return None;
        }
        self.has_news = true;
        self.next += 1;
        self.insert((job.hotness, Reverse(self.next)), job);
        if self.entries <= WAITING_MAX {
            return None;
        }
        let (user, most) = self.by_user.iter().max_by_key(|(_, jobs)| jobs.len())?;
        let (user, coldest) = (*user, most.values().next()?.file);
        self.remove(coldest, user);
        (!self.ranks.contains_key(&coldest)).then_some(coldest)
    }

    /// Makes a file hotter, if it is in the list of that user or is being built. Returns false if it
    /// has to be added.
    pub fn heat(&mut self, file: ModuleId, wanted_by: u32, by: u64) -> bool {
        if let Some(duty) = self.building.get(&file)
            && (*duty == Duty::Wanted || by < Duty::Wanted.hotness_min())
        {
            return true;
        }
        let Some(rank) = self.rank(file, wanted_by) else {
            return false;
        };
        if by > 0
            && let Some(job) = self.remove(file, wanted_by)
        {
            let hotness = rank.0.saturating_add(by);
            let least = Duty::Wanted.hotness_min();
            self.has_news |= rank.0 < least && hotness >= least;
            self.insert((hotness, rank.1), job);
        }
        true
    }

    /// Whether there is work since the last call that a waiting thread may not have seen.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Returns the next file that a thread with this duty may build.
    pub fn pop(&mut self, duty: Duty, now: Instant) -> Option<Job> {
        let may = |job: &&Job| !self.building.contains_key(&job.file) || duty == Duty::Wanted;
        let mut hottest: Vec<(Rank, u32, ModuleId)> = self
            .by_user
            .iter()
            .filter_map(|(user, jobs)| {
                let (rank, job) = jobs.iter().rev().find(|(_, job)| may(job))?;
                Some((*rank, *user, job.file))
            })
            .filter(|(rank, ..)| rank.0 >= duty.hotness_min())
            .collect();
        // Chooses among those whose turn it could be as well.
        hottest.sort_unstable_by_key(|(rank, ..)| Reverse(*rank));
        let users = hottest.iter().map(|(_, user, _)| *user);
        let user = self.turns.next(users, now)?;
        let (_, _, file) = *hottest.iter().find(|(_, of, _)| *of == user)?;
        let job = self.remove(file, user)?;
        self.remove_from_all(file);
        self.building.insert(file, duty);
        Some(job)
    }

    /// Records the time that it took to build a table for a user.
    pub fn took(&mut self, user: u32, time: Duration, now: Instant) {
        self.turns.took(user, time, now);
    }

    /// Removes a file whose table has been taken.
    pub fn done(&mut self, file: ModuleId) {
        self.building.remove(&file);
        self.remove_from_all(file);
    }

    /// Returns the number of waiting files.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Ends the work: nothing more will be built.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether the builders are to end.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn rank(&self, file: ModuleId, user: u32) -> Option<Rank> {
        let mut places = self.ranks.get(&file)?.iter();
        let (_, rank) = places.find(|(of, _)| *of == user)?;
        Some(*rank)
    }

    fn insert(&mut self, rank: Rank, job: Job) {
        let user = job.wanted_by;
        self.ranks.entry(job.file).or_default().push((user, rank));
        self.by_user.entry(user).or_default().insert(rank, job);
        self.entries += 1;
    }

    fn remove(&mut self, file: ModuleId, user: u32) -> Option<Job> {
        let rank = self.rank(file, user)?;
        let places = self.ranks.get_mut(&file)?;
        places.retain(|(of, _)| *of != user);
        if places.is_empty() {
            self.ranks.remove(&file);
        }
        self.entries -= 1;
        let jobs = self.by_user.get_mut(&user)?;
        let job = jobs.remove(&rank);
        if jobs.is_empty() {
            self.by_user.remove(&user);
        }
        job
    }

    fn remove_from_all(&mut self, file: ModuleId) {
        while let Some((user, _)) = self.ranks.get(&file).and_then(|places| places.first()) {
            self.remove(file, *user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, file: u32, hotness: u64) -> Option<ModuleId> {
        queue.push(wanted(file, 0, hotness))
    }

    fn pop(queue: &mut Queue, duty: Duty) -> Option<Job> {
        queue.pop(duty, Instant::now())
    }

    fn drain(mut queue: Queue) -> Vec<u32> {
        std::iter::from_fn(|| pop(&mut queue, Duty::Any).map(|job| job.file.0)).collect()
    }

    /// A request for the table of a file of root that a user's programs need.
    fn wanted(file: u32, user: u32, hotness: u64) -> Job {
        Job {
            file: ModuleId(file),
            content: Content::Bytes([].into()),
            hotness,
            user: 0,
            wanted_by: user,
        }
    }

    #[test]
    fn the_hottest_first_then_the_oldest() {
        let mut queue = Queue::default();
        for (file, hotness) in [(1, 5), (2, 9), (3, 5), (4, 0)] {
            push(&mut queue, file, hotness);
        }
        assert_eq!(drain(queue), [2, 1, 3, 4]);
    }

    #[test]
    fn a_file_becomes_hotter_but_not_colder() {
        let mut queue = Queue::default();
        for (file, hotness) in [(1, 5), (2, 6), (1, 7), (2, 1)] {
            push(&mut queue, file, hotness);
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(queue), [1, 2]);
    }

    #[test]
    fn threads_are_woken_for_what_they_may_take_and_for_nothing_else() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 0);
        assert!(queue.take_news(), "a new file");
        push(&mut queue, 1, 1);
        assert!(queue.take_news(), "it is for the fast thread now");
        push(&mut queue, 1, 1);
        assert!(!queue.take_news());
        assert!(queue.heat(ModuleId(1), 0, 1));
        assert!(!queue.heat(ModuleId(1), 7, 1), "another user's list");
        assert!(!queue.take_news());
        assert!(pop(&mut queue, Duty::Wanted).is_some());
        assert!(queue.heat(ModuleId(1), 7, 1), "it is being built");
        assert!(!queue.take_news());
    }

    #[test]
    fn a_file_that_is_built_is_not_built_again() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 1);
        let job = pop(&mut queue, Duty::Wanted).unwrap();
        push(&mut queue, 1, 2);
        assert_eq!(queue.len(), 0);
        queue.done(job.file);
        push(&mut queue, 1, 3);
        assert_eq!(drain(queue), [1]);
    }

    #[test]
    fn what_samples_wait_for_does_not_wait_for_the_slow_thread() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 0);
        push(&mut queue, 2, 0);
        assert!(pop(&mut queue, Duty::Wanted).is_none());
        assert_eq!(pop(&mut queue, Duty::Any).unwrap().file, ModuleId(1));
        push(&mut queue, 1, 0);
        assert_eq!(queue.len(), 1);
        push(&mut queue, 1, 1);
        assert_eq!(pop(&mut queue, Duty::Any).unwrap().file, ModuleId(2));
        assert!(pop(&mut queue, Duty::Any).is_none());
        assert_eq!(pop(&mut queue, Duty::Wanted).unwrap().file, ModuleId(1));
        push(&mut queue, 1, 5);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn the_first_of_two_tables_is_enough() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 0);
        pop(&mut queue, Duty::Any).unwrap();
        push(&mut queue, 1, 1);
        queue.done(ModuleId(1));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn the_coldest_is_given_up() {
        let mut queue = Queue::default();
        for file in 0..WAITING_MAX as u32 {
            assert_eq!(push(&mut queue, file, u64::from(file) + 1), None);
        }
        assert_eq!(push(&mut queue, 9999, 5000), Some(ModuleId(0)));
        assert_eq!(push(&mut queue, 0, 0), Some(ModuleId(0)));
        assert_eq!(queue.len(), WAITING_MAX);
    }

    #[test]
    fn who_took_long_waits_for_others_however_hot_theirs_are() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for (file, user, hotness) in [(1, 7, 900), (2, 7, 800), (3, 8, 1), (4, 8, 2)] {
            assert_eq!(queue.push(wanted(file, user, hotness)), None);
        }
        let next = |queue: &mut Queue| queue.pop(Duty::Wanted, now).unwrap().file.0;
        assert_eq!(next(&mut queue), 1, "the hottest");
        queue.took(7, Duration::from_millis(100), now);
        assert_eq!(next(&mut queue), 4);
        queue.took(8, Duration::from_millis(10), now);
        assert_eq!(next(&mut queue), 3);
        assert_eq!(next(&mut queue), 2);
    }

    #[test]
    fn who_fills_the_queue_gives_up_their_own() {
        let mut queue = Queue::default();
        let push = |queue: &mut Queue, file, user| queue.push(wanted(file, user, u64::from(file)));
        assert_eq!(push(&mut queue, 0, 8), None);
        for file in 1..WAITING_MAX as u32 {
            assert_eq!(push(&mut queue, file, 7), None);
        }
        assert_eq!(push(&mut queue, 9_999, 7), Some(ModuleId(1)));
        assert_eq!(push(&mut queue, 9_998, 8), Some(ModuleId(2)));
    }

    #[test]
    fn a_file_that_several_want_is_built_once_in_the_turn_of_the_first() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let push = |queue: &mut Queue, file, user, hotness| {
            assert_eq!(queue.push(wanted(file, user, hotness)), None);
        };
        // One user maps files of everybody and is sampled all the time.
        for file in 1..=100 {
            push(&mut queue, file, 7, 500);
        }
        queue.took(7, Duration::from_millis(50), now);
        push(&mut queue, 60, 8, 1);
        push(&mut queue, 60, 8, 1);
        push(&mut queue, 61, 8, 1);
        assert_eq!(queue.len(), 100);
        let mut next = || {
            let job = queue.pop(Duty::Wanted, now).unwrap();
            queue.done(job.file);
            (job.file.0, job.wanted_by)
        };
        assert_eq!(next(), (60, 8), "their samples, and not those of the other");
        assert_eq!(next(), (61, 8));
        assert_eq!(next(), (1, 7));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop(Duty::Any, now)).collect();
        assert_eq!((rest.len(), queue.len(), queue.entries), (97, 0, 0));
    }
}
