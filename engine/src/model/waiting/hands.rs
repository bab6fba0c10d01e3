//! *Hands*: the threads that had a lock, one after the other, while another one waited for it.
//!
//! The thread that ends a wait had the lock last, and often not for all of the wait. It had
//! waited for the lock as well, in front of the one that it wakes:
//!
//! ```text
//! waiter  ├─────────────────── waits ───────────────────┤ woken by C
//! A       ── has the lock ──┤ wakes B
//! B          waits ─────────├── has it ──┤ wakes C
//! C             waits ──────────────────├── has it ─────┤
//!         ├───── for A ─────┼── for B ───┼──── for C ───┤
//! ```
//!
//! So a wait is divided where the threads that had the lock were woken themselves:
//!
//! 1. The last part is of the thread that ended the wait. It begins where that thread was woken
//!    from its own wait for a lock.
//! 2. The part before that is of the thread that woke it then, and so on.
//! 3. The first part is of the thread of which no earlier wait is known: it had the lock already,
//!    or took it without waiting, or its wait was short and gave no stack.
//!
//! Which lock a thread waits for is not known. If one of these threads waited for another lock, the
//! thread that had that lock kept the waiter waiting as well.

use profile::{Ending, Frame, NewSample, ProcessId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Into how many parts a wait is divided at most; what is left is of the last one found.
const PARTS_MAX: usize = 64;

/// Ends of waits that are remembered of a thread: it may have waited again since the one that is
/// looked for.
const ENDS_MAX: usize = 8;

/// Threads whose waits are remembered; beyond, those that waited last long ago are forgotten.
const THREADS_MAX: usize = 4_096;

/// A thread gave a lock back, and so ended a wait of another one.
#[derive(Debug)]
struct Release {
    time_ns: u64,
    cpu: u16,
    process: ProcessId,
    tid: u32,
    comm: Box<str>,
    frames: Box<[Frame]>,
    kernel_frames: usize,
    ending: Ending,
}

/// A part of a wait.
#[derive(Debug)]
pub struct Part {
    /// The thread that had the lock, as it was when it gave it back. `None`: it is the one that
    /// ended the whole wait.
    release: Option<Arc<Release>>,
    /// How long the part was.
    pub ns: u64,
}

/// Which threads ended waits for locks, of which threads, and when.
#[derive(Debug, Default)]
pub struct Hands {
    /// By the thread that waited, the oldest first.
    ends: HashMap<u32, VecDeque<Arc<Release>>>,
    /// By the thread that waited: the thread that had the lock in the first part of its last wait.
    first: HashMap<u32, u32>,
}

impl Hands {
    /// Divides a wait for a lock of the thread `waiter`, which was `waited_ns` long and was ended
    /// by the thread of `sample`. The last part comes first.
    pub fn divide(&mut self, waiter: u32, waited_ns: u64, sample: &NewSample<'_>) -> Vec<Part> {
        let begin_ns = sample.time_ns.saturating_sub(waited_ns);
        let (mut until_ns, mut tid) = (sample.time_ns, sample.tid);
        let mut release = None;
        let mut parts = Vec::new();
        while parts.len() + 1 < PARTS_MAX
            && let Some(earlier) = self.end_before(tid, until_ns)
            && earlier.time_ns > begin_ns
        {
            let ns = until_ns - earlier.time_ns;
            (until_ns, tid) = (earlier.time_ns, earlier.tid);
            parts.push(Part {
                release: release.replace(earlier),
                ns,
            });
        }
        parts.push(Part {
            release,
            ns: until_ns - begin_ns,
        });
        self.note(waiter, tid, sample);
        parts
    }

    /// Returns the thread that had the lock when the last wait of `waiter` began, as far as the
    /// waits that are remembered tell.
    pub fn take_first(&mut self, waiter: u32) -> Option<u32> {
        self.first.remove(&waiter)
    }

    /// Returns how the last wait of a thread ended that was over before `time_ns`.
    fn end_before(&self, tid: u32, time_ns: u64) -> Option<Arc<Release>> {
        let ends = self.ends.get(&tid)?;
        let end = ends.iter().rev().find(|end| end.time_ns < time_ns);
        end.cloned()
    }

    fn note(&mut self, waiter: u32, first: u32, sample: &NewSample<'_>) {
        if self.ends.len() >= THREADS_MAX && !self.ends.contains_key(&waiter) {
            self.forget_half();
        }
        self.first.insert(waiter, first);
        let ends = self.ends.entry(waiter).or_default();
        if ends.len() == ENDS_MAX {
            ends.pop_front();
        }
        ends.push_back(Arc::new(Release {
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            process: sample.process,
            tid: sample.tid,
            comm: sample.comm.into(),
            frames: sample.frames.into(),
            kernel_frames: sample.kernel_frames,
            ending: sample.ending,
        }));
    }

    /// Forgets the half of the threads whose last waits were over first.
    fn forget_half(&mut self) {
        let last = |ends: &VecDeque<Arc<Release>>| ends.back().map_or(0, |end| end.time_ns);
        let mut times: Vec<u64> = self.ends.values().map(last).collect();
        let middle = times.len() / 2;
        let (_, middle_ns, _) = times.select_nth_unstable(middle);
        let middle_ns = *middle_ns;
        self.ends.retain(|_, ends| last(ends) > middle_ns);
        let ends = &self.ends;
        self.first.retain(|tid, _| ends.contains_key(tid));
    }
}

impl Part {
    /// The sample of the thread that had the lock in this part of a wait which the thread of `last`
    /// ended. It counts when the wait was over.
    pub fn sample<'a>(&'a self, last: NewSample<'a>) -> NewSample<'a> {
        match &self.release {
            None => last,
            Some(release) => NewSample {
                cpu: release.cpu,
                process: release.process,
                tid: release.tid,
                comm: &release.comm,
                frames: &release.frames,
                kernel_frames: release.kernel_frames,
                ending: release.ending,
                ..last
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken_by(tid: u32, time_ns: u64) -> NewSample<'static> {
        NewSample {
            time_ns,
            cpu: 0,
            process: ProcessId(1),
            tid,
            comm: "worker",
            frames: &[],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }
    }

    /// Threads and lengths of the parts, the last one first.
    fn divide(hands: &mut Hands, waiter: u32, waited_ns: u64, by: u32, at: u64) -> Vec<(u32, u64)> {
        let sample = woken_by(by, at);
        let parts = hands.divide(waiter, waited_ns, &sample);
        let told = parts
            .iter()
            .map(|part| (part.sample(sample).tid, part.ns))
            .collect::<Vec<_>>();
        assert_eq!(told.iter().map(|(_, ns)| ns).sum::<u64>(), waited_ns);
        told
    }

    #[test]
    fn a_queue_for_a_lock_is_divided_among_those_in_front() {
        let mut hands = Hands::default();
        // Thread 1 has the lock from 0 to 900; 2, 3 and 4 come at 100, 200 and 300.
        assert_eq!(divide(&mut hands, 2, 800, 1, 900), [(1, 800)]);
        assert_eq!(divide(&mut hands, 3, 750, 2, 950), [(2, 50), (1, 700)]);
        assert_eq!(
            divide(&mut hands, 4, 660, 3, 960),
            [(3, 10), (2, 50), (1, 600)]
        );
        // Thread 1 had the lock when each of these waits began.
        assert_eq!([2, 3, 4].map(|tid| hands.take_first(tid)), [Some(1); 3]);
        assert_eq!(hands.take_first(2), None);
        // It comes again at 955, and waits for 4, which has waited for 3 and 2.
        assert_eq!(
            divide(&mut hands, 1, 45, 4, 1000),
            [(4, 40), (3, 5)],
            "what was before its wait began is no part of it"
        );
    }

    #[test]
    fn a_thread_that_did_not_wait_in_it_has_all_of_a_wait() {
        let mut hands = Hands::default();
        assert_eq!(divide(&mut hands, 2, 100, 1, 200), [(1, 100)]);
        // Thread 2 was woken at 200: before this wait began.
        assert_eq!(divide(&mut hands, 3, 50, 2, 300), [(2, 50)]);
    }

    #[test]
    fn two_that_wait_for_each_other_in_turn_are_not_followed_for_ever() {
        let mut hands = Hands::default();
        for turn in 1..=1000 {
            let (waiter, by) = if turn % 2 == 0 { (1, 2) } else { (2, 1) };
            let parts = divide(&mut hands, waiter, 10 * turn, by, 10 * turn);
            assert!(parts.len() <= PARTS_MAX);
        }
        assert!(hands.ends.values().all(|ends| ends.len() <= ENDS_MAX));
    }

    #[test]
    fn threads_that_waited_long_ago_are_forgotten() {
        let mut hands = Hands::default();
        for waiter in 0..20_000 {
            divide(&mut hands, waiter, 1, 100_000, 10 + u64::from(waiter));
            assert!(hands.ends.len() <= THREADS_MAX);
        }
        assert!(hands.ends.contains_key(&19_999));
        assert!(hands.first.len() <= THREADS_MAX);
    }
}
