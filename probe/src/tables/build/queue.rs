//! The files whose tables are wanted, hottest first, and those that are being built.

use super::{Content, Duty};
use crate::ids::ModuleId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Files that wait, each with an open descriptor. A machine runs some hundred.
const WAITING_MAX: usize = 4096;

/// A file whose table is wanted.
#[derive(Debug)]
pub struct Job {
    pub file: ModuleId,
    pub content: Content,
    /// Samples that would have needed it.
    pub hotness: u64,
}

/// Hotter is greater; of two equals the older one is.
type Rank = (u64, Reverse<u64>);

/// The files whose tables are to be built, hottest first.
#[derive(Debug, Default)]
pub struct Queue {
    by_rank: BTreeMap<Rank, Job>,
    ranks: HashMap<ModuleId, Rank>,
    /// From when a thread takes one until the table is taken from it.
    building: HashMap<ModuleId, Duty>,
    next: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds a file, or makes one hotter that waits already; `None` for one that
    /// is being built, but that the thread which may take its time has begun and
    /// samples wait for now. The coldest one is returned if there are too many.
    pub fn push(&mut self, job: Job) -> Option<ModuleId> {
        if let Some(duty) = self.building.get(&job.file)
            && (*duty == Duty::Wanted || job.hotness < Duty::Wanted.hotness_min())
        {
            return None;
        }
        if let Some(rank) = self.ranks.get(&job.file).copied() {
            if rank.0 < job.hotness {
                self.by_rank.remove(&rank);
                self.insert((job.hotness, rank.1), job);
            }
            return None;
        }
        self.next += 1;
        self.insert((job.hotness, Reverse(self.next)), job);
        if self.by_rank.len() <= WAITING_MAX {
            return None;
        }
        let (_, coldest) = self.by_rank.pop_first()?;
        self.ranks.remove(&coldest.file);
        Some(coldest.file)
    }

    /// The hottest one that a thread of this duty may build.
    pub fn pop(&mut self, duty: Duty) -> Option<Job> {
        let mut hottest_first = self.by_rank.iter().rev();
        let (rank, _) = hottest_first
            .find(|(_, job)| !self.building.contains_key(&job.file) || duty == Duty::Wanted)?;
        let rank = *rank;
        if rank.0 < duty.hotness_min() {
            return None;
        }
        let job = self.by_rank.remove(&rank)?;
        self.ranks.remove(&job.file);
        self.building.insert(job.file, duty);
        Some(job)
    }

    /// A file's table has been taken: nobody waits for it any more.
    pub fn done(&mut self, file: ModuleId) {
        self.building.remove(&file);
        if let Some(rank) = self.ranks.remove(&file) {
            self.by_rank.remove(&rank);
        }
    }

    /// How many files wait.
    pub fn len(&self) -> usize {
        self.by_rank.len()
    }

    /// Nothing more will be built.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether the builders are to end.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn insert(&mut self, rank: Rank, job: Job) {
        self.ranks.insert(job.file, rank);
        self.by_rank.insert(rank, job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, file: u32, hotness: u64) -> Option<ModuleId> {
        queue.push(Job {
            file: ModuleId(file),
            content: Content::Bytes([].into()),
            hotness,
        })
    }

    fn drain(mut queue: Queue) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(Duty::Any).map(|job| job.file.0)).collect()
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
    fn a_file_that_is_built_is_not_built_again() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 1);
        let job = queue.pop(Duty::Wanted).unwrap();
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
        assert!(queue.pop(Duty::Wanted).is_none());
        assert_eq!(queue.pop(Duty::Any).unwrap().file, ModuleId(1));
        push(&mut queue, 1, 0);
        assert_eq!(queue.len(), 1);
        push(&mut queue, 1, 1);
        assert_eq!(queue.pop(Duty::Any).unwrap().file, ModuleId(2));
        assert!(queue.pop(Duty::Any).is_none());
        assert_eq!(queue.pop(Duty::Wanted).unwrap().file, ModuleId(1));
        push(&mut queue, 1, 5);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn the_first_of_two_tables_is_enough() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 0);
        queue.pop(Duty::Any).unwrap();
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
}
