//! The files whose tables are wanted, hottest first.

use super::Content;
use crate::sample::ModuleId;
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

#[derive(Debug, Default)]
pub struct Queue {
    by_rank: BTreeMap<Rank, Job>,
    ranks: HashMap<ModuleId, Rank>,
    next: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds a file, or makes one hotter that waits already. The coldest one is
    /// returned if there are too many.
    pub fn push(&mut self, job: Job) -> Option<ModuleId> {
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

    /// The hottest one, if it is that hot.
    pub fn pop(&mut self, hotness_min: u64) -> Option<Job> {
        let entry = self.by_rank.last_entry()?;
        if entry.key().0 < hotness_min {
            return None;
        }
        let job = entry.remove();
        self.ranks.remove(&job.file);
        Some(job)
    }

    pub fn len(&self) -> usize {
        self.by_rank.len()
    }

    pub fn close(&mut self) {
        self.is_closed = true;
    }

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
        std::iter::from_fn(|| queue.pop(0).map(|job| job.file.0)).collect()
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
