//! The *log of states*: what each thread did over time, and for whom it waited. If waiting time is
//! counted, the log is kept together with the samples, in a store and in a recording.
//!
//! It consists of *stretches*: parts of a thread's life, each with the time in every state. They
//! follow each other without a gap. A stretch with a single state is as long as the state lasted,
//! up to [`STRETCH_MAX_NS`]; others are about a second long.
//!
//! ```text
//!   thread 7   ├─ run 0.2 s, lock 0.8 s ─┼────── lock ──────┼────── lock ─ ─ ─ it may grow
//!   thread 8   ├─ run 0.9 s, queue 0.1 s ─┤ ended
//! ```

use crate::few;
use crate::wait::{DELAY_SLOTS, Delays, STATE_COUNT};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum length of a stretch with one state: a recording that is cut off lacks no more than this.
const STRETCH_MAX_NS: u64 = 10 * SECOND_NS;

/// Maximum length of a stretch with several states.
const MIXED_MAX_NS: u64 = SECOND_NS;

/// How long the last known state of a thread is assumed to continue: sums are read once a second or
/// more often.
const GOES_ON_MAX_NS: u64 = 3 * SECOND_NS / 2;

/// Maximum number of stretches that are kept, some 120 bytes each; beyond it the oldest seconds are
/// dropped.
pub(crate) const STRETCHES_MAX: usize = 1 << 18;

/// Maximum number of threads whose last stretch may still grow; further threads are left out.
pub(crate) const LIVING_MAX: usize = 1 << 16;

/// Maximum number of pairs of a waiting thread and the thread it waited for, counted in every
/// second; beyond it the oldest seconds are dropped.
pub(crate) const HELD_MAX: usize = 1 << 16;

/// How far back from the end of a window the course of a thread reaches, if the window itself is
/// shorter.
const COURSE_NS: u64 = 130 * SECOND_NS;

const SECOND_NS: u64 = 1_000_000_000;

/// A thread, identified also by when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateThread {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// When it was first seen, on the clock of the samples.
    pub since_ns: u64,
}

/// The state of a thread at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoingThen {
    /// Index in [`STATES`](crate::STATES).
    pub state: usize,
    /// Since when the thread has been in it, on the clock of the samples.
    pub since_ns: u64,
    /// The thread that holds the lock that it waits for; `None` if unknown.
    pub owner: Option<u32>,
}

/// A part of a thread's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateStretch {
    /// The thread.
    pub thread: Arc<StateThread>,
    /// When it begins, on the clock of the samples.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// The thread's state at the end of the stretch; `None` if the thread ended there.
    pub then: Option<DoingThen>,
    /// Nanoseconds in each state that occurred, by rising state.
    ns: Box<[(u8, u64)]>,
    /// Number of waits in the queue in each slot of lengths that occurred, by rising slot.
    delays: Box<[(u8, u32)]>,
}

impl StateStretch {
    /// Makes a stretch; `None` if these sums are not possible for a stretch of that length.
    pub fn new(
        thread: &Arc<StateThread>,
        (start_ns, end_ns): (u64, u64),
        ns: &[u64; STATE_COUNT],
        delays: &Delays,
        then: Option<DoingThen>,
    ) -> Option<Self> {
        let sum = ns.iter().try_fold(0u64, |sum, ns| sum.checked_add(*ns))?;
        let is_possible = sum <= end_ns.checked_sub(start_ns)?
            && then.is_none_or(|then| then.state < STATE_COUNT && then.since_ns <= end_ns);
        let entered = (0u8..).zip(*ns).filter(|(_, ns)| *ns > 0);
        let met = (0u8..).zip(delays.0).filter(|(_, count)| *count > 0);
        is_possible.then(|| Self {
            thread: Arc::clone(thread),
            start_ns,
            end_ns,
            then,
            ns: entered.collect(),
            delays: met.collect(),
        })
    }

    /// The states that occurred, each as index in [`STATES`](crate::STATES) and nanoseconds.
    pub(crate) fn states(&self) -> &[(u8, u64)] {
        &self.ns
    }

    /// Number of waits in the queue in each slot.
    pub(crate) fn delays(&self) -> &[(u8, u32)] {
        &self.delays
    }

    /// The only state that occurred; `None` if there were several.
    fn only_state(&self) -> Option<u8> {
        match self.ns[..] {
            [(state, _)] if self.delays.is_empty() => Some(state),
            _ => None,
        }
    }

    fn sums(&self) -> ([u64; STATE_COUNT], Delays) {
        let (mut ns, mut delays) = ([0; STATE_COUNT], Delays::default());
        for (state, sum) in &self.ns {
            ns[usize::from(*state)] = *sum;
        }
        for (slot, count) in &self.delays {
            delays.0[usize::from(*slot)] = *count;
        }
        (ns, delays)
    }

    /// Joins this stretch with the following one; `None` if they have to stay separate.
    fn with(&self, next: &StateStretch) -> Option<StateStretch> {
        let is_next = self.thread == next.thread && self.end_ns == next.start_ns;
        let only = self.only_state();
        let longest_ns = if only.is_some() && only == next.only_state() {
            STRETCH_MAX_NS
        } else {
            MIXED_MAX_NS
        };
        if !is_next || next.end_ns.checked_sub(self.start_ns)? > longest_ns {
            return None;
        }
        let (mut ns, mut delays) = self.sums();
        let (more_ns, more_delays) = next.sums();
        for (sum, more) in ns.iter_mut().zip(more_ns) {
            *sum = sum.saturating_add(more);
        }
        delays.add(&more_delays);
        let span = (self.start_ns, next.end_ns);
        StateStretch::new(&self.thread, span, &ns, &delays, next.then)
    }

    /// The state with most time.
    fn most(&self) -> Option<usize> {
        let most = self.ns.iter().max_by_key(|(_, ns)| *ns)?;
        Some(most.0.into())
    }
}

/// How it is known for whom a thread waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldBy {
    /// The lock named this thread as its owner when the wait began.
    Owner,
    /// This thread ended the wait.
    Waker,
    /// A timer ended the wait and not a thread, such as the timeout of a wait.
    Timer,
    /// Another interrupt ended the wait and not a thread, such as that of a network device.
    Interrupt,
}

impl HeldBy {
    /// Whether the waiter waited for a thread.
    pub fn is_thread(self) -> bool {
        matches!(self, HeldBy::Owner | HeldBy::Waker)
    }
}

/// How long one thread waited for another, from the stacks that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The thread that waited.
    pub waiter: u32,
    /// Process of the thread that it waited for; 0 if no thread ended the wait.
    pub holder: u32,
    /// The thread that it waited for; 0 if no thread ended the wait.
    pub holder_thread: u32,
    /// How that is known.
    pub by: HeldBy,
    /// What it waited for, as index in [`STATES`](crate::STATES).
    pub state: usize,
    /// Time waited, in nanoseconds.
    pub ns: u64,
    /// Number of waits that ended.
    pub waits: u64,
}

/// Waiter, the thread it waited for, how that is known, and the state.
type PairKey = (u32, u32, HeldBy, usize);

impl Held {
    /// The key that identifies a pair.
    fn pair(&self) -> PairKey {
        (self.waiter, self.holder_thread, self.by, self.state)
    }

    fn add(&mut self, more: &Held) {
        self.ns = self.ns.saturating_add(more.ns);
        self.waits = self.waits.saturating_add(more.waits);
    }
}

/// What a thread did in a window.
#[derive(Debug, Clone)]
pub struct ThreadDid {
    /// Which thread.
    pub thread: Arc<StateThread>,
    /// Nanoseconds in each of [`STATES`](crate::STATES). For a thread that lived all the time they
    /// add up to the window.
    pub ns: [u64; STATE_COUNT],
    /// Number of waits in the queue by length. For a stretch that the window cuts, a proportional
    /// part is counted.
    pub delays: Delays,
    /// Its state at the end of the window; `None` if it had ended, or if the state is unknown.
    pub then: Option<DoingThen>,
    /// Stretches of its life, rising, each with its beginning, its end and the state with most
    /// time. They reach further back than a short window.
    pub course: Vec<(u64, u64, usize)>,
}

/// What threads did over time, and for whom they waited.
///
/// Cloning is cheap: the data of past seconds is shared.
#[derive(Debug, Clone, Default)]
pub struct StateLog {
    /// The last stretch of each living thread, by thread.
    living: BTreeMap<u32, StateStretch>,
    /// Finished stretches by the second in which they end.
    seconds: BTreeMap<u64, Arc<Vec<StateStretch>>>,
    stretches: usize,
    /// Number of stretches that were dropped because there was no room.
    forgotten: u64,
    /// Who waited for whom, by second. A map and not a list, as a file may have very many pairs in
    /// one second.
    held: BTreeMap<u64, Arc<BTreeMap<PairKey, Held>>>,
    pairs: usize,
}

impl StateLog {
    /// Whether the log has nothing about any thread.
    pub fn is_empty(&self) -> bool {
        self.living.is_empty() && self.seconds.is_empty() && self.held.is_empty()
    }

    /// Adds a thread's next stretch, which follows those that were added before.
    pub fn add(&mut self, stretch: StateStretch) {
        let tid = stretch.thread.tid;
        let before = self.living.remove(&tid);
        let joined = before.as_ref().and_then(|before| before.with(&stretch));
        if let (Some(before), None) = (before, &joined) {
            self.close(before);
        }
        let stretch = joined.unwrap_or(stretch);
        if stretch.then.is_none() {
            self.close(stretch);
        } else if self.living.len() < LIVING_MAX {
            self.living.insert(tid, stretch);
        } else {
            self.forgotten += 1;
        }
    }

    /// Stores a stretch that does not grow any more.
    fn close(&mut self, stretch: StateStretch) {
        let second = self.seconds.entry(stretch.end_ns / SECOND_NS).or_default();
        Arc::make_mut(second).push(stretch);
        self.stretches += 1;
        while self.stretches > STRETCHES_MAX
            && let Some((_, oldest)) = self.seconds.pop_first()
        {
            self.stretches -= oldest.len();
            self.forgotten += oldest.len() as u64;
        }
    }

    /// Number of stretches that are missing because there was no room for them.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Records that a thread waited for another one.
    pub fn add_held(&mut self, second: u64, held: Held) {
        let pairs = Arc::make_mut(self.held.entry(second).or_default());
        let before = pairs.len();
        let sum = pairs.entry(held.pair());
        sum.and_modify(|sum| sum.add(&held)).or_insert(held);
        self.pairs += pairs.len() - before;
        while self.pairs > HELD_MAX
            && let Some((_, oldest)) = self.held.pop_first()
        {
            self.pairs -= oldest.len();
        }
    }

    /// Drops everything that ended before a second.
    pub(crate) fn forget_before(&mut self, second: u64) {
        self.seconds = self.seconds.split_off(&second);
        self.stretches = self.seconds.values().map(|all| all.len()).sum();
        self.held = self.held.split_off(&second);
        self.pairs = self.held.values().map(|all| all.len()).sum();
        self.living
            .retain(|_, stretch| stretch.end_ns / SECOND_NS >= second);
    }

    /// The first second that the log has anything about.
    pub(crate) fn oldest_second(&self) -> Option<u64> {
        let first = [self.seconds.keys().next(), self.held.keys().next()];
        first.into_iter().flatten().min().copied()
    }

    /// Stretches that do not grow any more, by the second in which they end. Stretches may be added
    /// to a second later, but not removed.
    pub(crate) fn closed(&self) -> impl Iterator<Item = (u64, &[StateStretch])> {
        let seconds = self.seconds.iter();
        seconds.map(|(second, stretches)| (*second, &stretches[..]))
    }

    /// The last stretch of each living thread.
    pub(crate) fn living(&self) -> impl Iterator<Item = &StateStretch> {
        self.living.values()
    }

    /// Who waited for whom, second by second.
    pub(crate) fn held(
        &self,
    ) -> impl DoubleEndedIterator<Item = (u64, impl Iterator<Item = &Held>)> {
        let seconds = self.held.iter();
        seconds.map(|(second, pairs)| (*second, pairs.values()))
    }

    /// Returns the log with other names for threads.
    pub(crate) fn renamed(&self, mut comm: impl FnMut(&Arc<str>) -> Arc<str>) -> StateLog {
        let mut renamed = |stretch: &StateStretch| StateStretch {
            thread: Arc::new(StateThread {
                comm: comm(&stretch.thread.comm),
                ..StateThread::clone(&stretch.thread)
            }),
            ..stretch.clone()
        };
        let living = self
            .living
            .iter()
            .map(|(tid, stretch)| (*tid, renamed(stretch)));
        StateLog {
            living: living.collect(),
            seconds: self
                .seconds
                .iter()
                .map(|(second, all)| (*second, Arc::new(all.iter().map(&mut renamed).collect())))
                .collect(),
            ..self.clone()
        }
    }

    /// Returns what threads did in a window, by rising thread number and, if several had the same
    /// number, by when they were first seen.
    pub fn between(&self, start_ns: u64, end_ns: u64) -> Vec<ThreadDid> {
        let course_ns = start_ns.min(end_ns.saturating_sub(COURSE_NS));
        let mut all: BTreeMap<(u32, u64), ThreadDid> = BTreeMap::new();
        let mut add = |stretch: &StateStretch, goes_on_ns: u64| {
            let is_met = stretch.end_ns > course_ns && stretch.start_ns < end_ns;
            if !is_met && goes_on_ns == 0 {
                return;
            }
            let key = (stretch.thread.tid, stretch.thread.since_ns);
            let did = all.entry(key).or_insert_with(|| ThreadDid {
                thread: Arc::clone(&stretch.thread),
                ns: [0; STATE_COUNT],
                delays: Delays::default(),
                then: None,
                course: Vec::new(),
            });
            did.thread = Arc::clone(&stretch.thread);
            // A state that began before the end of the window is the state at its end.
            did.then = stretch.then.filter(|then| then.since_ns < end_ns);
            did.add(stretch, start_ns, end_ns);
            if let (Some(then), 1..) = (stretch.then, goes_on_ns) {
                let from_ns = stretch.end_ns.max(start_ns);
                let until_ns = stretch.end_ns.saturating_add(goes_on_ns);
                let more_ns = until_ns.saturating_sub(from_ns);
                did.ns[then.state] = did.ns[then.state].saturating_add(more_ns);
                did.course.push((stretch.end_ns, until_ns, then.state));
            }
        };
        for stretches in self
            .seconds
            .range(course_ns / SECOND_NS..)
            .map(|(_, all)| all)
        {
            stretches.iter().for_each(|stretch| add(stretch, 0));
        }
        for stretch in self.living.values() {
            let until_ns = end_ns.saturating_sub(stretch.end_ns);
            add(
                stretch,
                if until_ns > GOES_ON_MAX_NS {
                    0
                } else {
                    until_ns
                },
            );
        }
        // A thread that did nothing in the window has only its past in the result, so it is left
        // out.
        let did = all.into_values();
        did.filter(|did| did.ns.iter().any(|ns| *ns > 0)).collect()
    }

    /// Returns who waited for whom in the seconds that begin in a window, longest first. The second
    /// in which the window begins is included.
    pub fn held_between(&self, start_ns: u64, end_ns: u64) -> Vec<Held> {
        let mut sums: BTreeMap<_, Held> = BTreeMap::new();
        let seconds = self
            .held
            .range(start_ns / SECOND_NS..)
            .take_while(|(second, _)| second.saturating_mul(SECOND_NS) < end_ns);
        for held in seconds.flat_map(|(_, all)| all.values()) {
            let key = held.pair();
            sums.entry(key)
                .and_modify(|sum| sum.add(held))
                .or_insert(*held);
        }
        let mut all: Vec<Held> = sums.into_values().collect();
        // A wait is recorded as a whole some time after it began, so its time is limited to the
        // length of the window.
        let most_ns = end_ns.saturating_sub(start_ns);
        all.iter_mut()
            .for_each(|held| held.ns = held.ns.min(most_ns));
        few::sort_by_key(&mut all, |held| std::cmp::Reverse(held.ns));
        all
    }
}

impl ThreadDid {
    /// Adds a stretch; its sums are cut to the part that lies in the window.
    fn add(&mut self, stretch: &StateStretch, start_ns: u64, end_ns: u64) {
        if let Some(most) = stretch.most() {
            self.course.push((stretch.start_ns, stretch.end_ns, most));
        }
        let from_ns = stretch.start_ns.max(start_ns);
        let within_ns = stretch.end_ns.min(end_ns).saturating_sub(from_ns);
        let all_ns = stretch.end_ns - stretch.start_ns;
        let share = |sum: u64| {
            let sum = u128::from(sum) * u128::from(within_ns);
            let half = u128::from(all_ns) / 2;
            u64::try_from((sum + half) / u128::from(all_ns.max(1))).unwrap_or(u64::MAX)
        };
        for (state, ns) in stretch.states() {
            let sum = &mut self.ns[usize::from(*state)];
            *sum = sum.saturating_add(share(*ns));
        }
        for (slot, count) in stretch.delays() {
            let sum = &mut self.delays.0[usize::from(*slot) % DELAY_SLOTS];
            *sum = sum.saturating_add(share((*count).into()) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LOCK: usize = 2;
    const RUN: usize = 0;

    fn thread(tid: u32) -> Arc<StateThread> {
        Arc::new(StateThread {
            pid: 1,
            tid,
            comm: "worker".into(),
            since_ns: 0,
        })
    }

    /// A stretch between two times in milliseconds, at whose end the thread waits for a lock since
    /// `since`.
    fn stretch(
        tid: u32,
        (start, end): (u64, u64),
        ns: &[(usize, u64)],
        since: u64,
    ) -> StateStretch {
        let mut sums = [0; STATE_COUNT];
        for (state, ms) in ns {
            sums[*state] = ms * MS;
        }
        let then = DoingThen {
            state: LOCK,
            since_ns: since * MS,
            owner: Some(9),
        };
        let span = (start * MS, end * MS);
        let delays = Delays::default();
        StateStretch::new(&thread(tid), span, &sums, &delays, Some(then)).expect("they fit")
    }

    fn did(log: &StateLog, start: u64, end: u64) -> Vec<(u32, u64, u64)> {
        let did = log.between(start * MS, end * MS).into_iter();
        did.map(|did| (did.thread.tid, did.ns[RUN] / MS, did.ns[LOCK] / MS))
            .collect()
    }

    /// A thread that runs and waits for a second, and then waits; its sums are read four times a
    /// second.
    fn log() -> StateLog {
        let mut log = StateLog::default();
        for quarter in 0..4 {
            let span = (quarter * 250, quarter * 250 + 250);
            log.add(stretch(7, span, &[(RUN, 200), (LOCK, 50)], span.1 - 50));
        }
        for quarter in 4..120 {
            let span = (quarter * 250, quarter * 250 + 250);
            log.add(stretch(7, span, &[(LOCK, 250)], 1000));
        }
        log
    }

    #[test]
    fn a_thread_that_waits_is_told_in_few_stretches_and_sums_are_those_of_the_window() {
        let log = log();
        // One stretch of several states, two whole ones of ten seconds, and one that may still
        // grow.
        assert_eq!((log.stretches, log.living.len()), (3, 1));
        assert_eq!(did(&log, 0, 30_000), [(7, 800, 29_200)]);
        assert_eq!(did(&log, 500, 2_500), [(7, 400, 1_600)]);
        assert_eq!(did(&log, 12_345, 12_346), [(7, 0, 1)]);
        // The last state is assumed to continue as long as no newer sums could have arrived.
        assert_eq!(did(&log, 29_000, 31_000), [(7, 0, 2_000)]);
        assert_eq!(did(&log, 30_500, 31_000), [(7, 0, 500)]);
        assert_eq!(did(&log, 29_000, 40_000), [(7, 0, 1_000)]);
        assert_eq!(did(&log, 40_000, 50_000), []);
        let at = |end: u64| {
            log.between(0, end * MS)[0]
                .then
                .map(|then| then.since_ns / MS)
        };
        assert_eq!((at(30_000), at(5_000)), (Some(1000), Some(1000)));
        // In the middle of a second with several states it is unknown.
        assert_eq!(at(500), None);
    }

    #[test]
    fn who_ends_is_told_once_and_a_number_may_be_given_again() {
        let mut log = log();
        let mut last = stretch(7, (30_000, 30_500), &[(RUN, 500)], 30_000);
        last.then = None;
        log.add(last);
        assert!(log.living.is_empty());
        assert_eq!(did(&log, 29_000, 31_000), [(7, 500, 1_000)]);
        assert_eq!(log.between(29_000 * MS, 31_000 * MS)[0].then, None);
        let again = Arc::new(StateThread {
            since_ns: 30_600 * MS,
            ..StateThread::clone(&thread(7))
        });
        let next = stretch(7, (30_600, 31_000), &[(LOCK, 400)], 30_600);
        log.add(StateStretch {
            thread: again,
            ..next
        });
        assert_eq!(did(&log, 29_000, 31_000), [(7, 500, 1_000), (7, 0, 400)]);
        log.forget_before(31);
        assert_eq!(did(&log, 0, 31_000), [(7, 0, 400)]);
        assert!(!log.is_empty());
        log.forget_before(32);
        assert!(log.is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = |span, ns: u64, state, since_ns| {
            let mut sums = [0; STATE_COUNT];
            sums[0] = ns;
            let then = DoingThen {
                state,
                since_ns,
                owner: None,
            };
            StateStretch::new(&thread(1), span, &sums, &Delays::default(), Some(then)).is_some()
        };
        assert!(new((5, 10), 5, 0, 10));
        assert!(!new((5, 10), 6, 0, 10), "more than there was");
        assert!(!new((10, 5), 0, 0, 0), "backwards");
        assert!(!new((5, 10), 5, STATE_COUNT, 10), "no such state");
        assert!(!new((5, 10), 5, 0, 11), "since later");
    }

    #[test]
    fn of_too_many_the_oldest_leave() {
        let mut log = StateLog::default();
        for at in 0..STRETCHES_MAX as u64 + 10 {
            let mut one = stretch(1, (at * 2, at * 2 + 1), &[(LOCK, 1)], 0);
            one.then = None;
            log.add(one);
        }
        assert!(log.stretches <= STRETCHES_MAX && log.stretches > STRETCHES_MAX - 1000);
        assert!(log.oldest_second() > Some(0));
        assert_eq!(
            log.forgotten() + log.stretches as u64,
            STRETCHES_MAX as u64 + 10
        );
        let held = |waiter| Held {
            waiter,
            holder: 1,
            holder_thread: 2,
            by: HeldBy::Owner,
            state: LOCK,
            ns: 5,
            waits: 1,
        };
        for at in 0..HELD_MAX as u64 + 10 {
            log.add_held(at / 100, held(at as u32));
            log.add_held(at / 100, held(at as u32));
        }
        assert!(log.pairs <= HELD_MAX);
        // All in one second, in the order that is worst for a list.
        for at in (0..HELD_MAX as u32 / 2).rev() {
            log.add_held(9_000, held(at));
        }
        assert_eq!(
            log.held_between(9_000 * SECOND_NS, u64::MAX).len(),
            HELD_MAX / 2
        );
        let last = log.held_between(650 * SECOND_NS, u64::MAX)[0];
        assert_eq!((last.ns, last.waits), (10, 2));
        assert_eq!(log.held_between(u64::MAX, u64::MAX), []);
    }
}
