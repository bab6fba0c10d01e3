//! A wait, and the sums of a thread, as the kernel side reports them.

use super::state::WaitState;
use crate::bytes::until_zero;
use probe_ebpf::waits::{DELAY_SLOTS, THREAD_WORDS, Thread, WAIT_WORDS, counter, ended_by, state};
use std::sync::Arc;
use symbolize::sanitize;

/// The details of a wait whose stack was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawWait {
    /// What it waited for; `Queue` if it was preempted.
    pub state: WaitState,
    /// Nanoseconds that the wait stands for, including similar waits whose stack was not taken.
    pub waited_ns: u64,
    /// Nanoseconds that the following time in the queue stands for.
    pub queued_ns: u64,
    /// The real length of both together.
    pub away_ns: u64,
    /// Who ended it. `None` if unknown, or if nobody had to. In a sample of
    /// [`Event::Wake`](crate::Event::Wake), whose stack is that of the thread that ended the wait,
    /// the waiting thread.
    pub waker: Option<Waker>,
    /// The owner of the lock when the wait began: process and thread. `None` if the lock does not
    /// contain it.
    pub owner: Option<(u32, u32)>,
    /// The part of `waited_ns` that earlier samples have reported while the wait was not over.
    pub told_ns: u64,
    /// Whether it is not over: then `waited_ns` is what no earlier sample has reported, and
    /// `away_ns` its length so far.
    pub is_open: bool,
}

/// Who ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waker {
    /// A thread.
    Thread {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A timer, such as that of a wait with a timeout.
    Timer,
    /// Another interrupt, such as that of a network device.
    Interrupt,
}

impl RawWait {
    /// Decodes the words before the frames. `None` if they are impossible.
    pub fn from_words(words: &[u64; WAIT_WORDS]) -> Option<Self> {
        let [
            mut waited_ns,
            mut queued_ns,
            mut away_ns,
            state_and_end,
            waker,
            owner,
        ] = *words;
        // The two times may be from different CPUs: a wait that seems to end before it began, which
        // gives a number near 2^64, has length 0.
        if away_ns > i64::MAX as u64 {
            (waited_ns, queued_ns, away_ns) = (0, 0, 0);
        }
        let of_word = |word: u64| ((word >> 32) as u32, word as u32);
        let (ended_by, state) = of_word(state_and_end);
        let state = WaitState::of_number(state.into())?;
        let owner = of_word(owner);
        let waker = match ended_by {
            ended_by::THREAD => {
                let (pid, tid) = of_word(waker);
                (tid != 0).then_some(Waker::Thread { pid, tid })
            }
            ended_by::TIMER => Some(Waker::Timer),
            ended_by::INTERRUPT => Some(Waker::Interrupt),
            _ => None,
        };
        Some(Self {
            state,
            waited_ns,
            queued_ns,
            away_ns,
            waker: waker.filter(|_| state != WaitState::Queue),
            owner: (owner.1 != 0 && state.has_owner()).then_some(owner),
            told_ns: 0,
            is_open: false,
        })
    }

    /// All the time that it stands for, whether reported before or not.
    pub fn weight_ns(&self) -> u64 {
        self.waited_ns.saturating_add(self.queued_ns)
    }

    /// The states of its time that was not reported before, with the time in each.
    pub fn parts(self) -> impl Iterator<Item = (WaitState, u64)> {
        let parts = [
            (self.state, self.waited_ns.saturating_sub(self.told_ns)),
            (WaitState::Queue, self.queued_ns),
        ];
        parts.into_iter().filter(|(_, ns)| *ns > 0)
    }
}

/// The times of a thread since it is known. The states add up to all of that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTotals {
    /// Its pid in the initial pid namespace.
    pub pid: u32,
    /// Its tid in the initial pid namespace.
    pub tid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Since when it is known, by `CLOCK_MONOTONIC`.
    pub since_ns: u64,
    /// When it was read.
    pub until_ns: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Its state at that time.
    pub state: WaitState,
    /// Since when it is in that state.
    pub state_since_ns: u64,
    /// If it waits for a lock: the thread of its process that owns it. `None` if the lock does not
    /// contain it.
    pub owner: Option<u32>,
    /// Nanoseconds in each of [`WaitState::ALL`], including the current state.
    pub ns: [u64; state::COUNT],
    /// Number of times that it left each state; wraps around at 2^32.
    pub times: [u32; state::COUNT],
    /// Number of its waits in the queue in each slot of
    /// [`delay_end_ns`](probe_ebpf::waits::delay_end_ns); wraps around at 2^32.
    pub delays: [u32; DELAY_SLOTS],
}

impl ThreadTotals {
    /// Converts the state of a thread that lives at `now_ns`. `None` if it changed while it was
    /// read.
    pub(super) fn of_living(tid: u32, thread: &Thread, now_ns: u64) -> Option<Self> {
        let known_ns = thread.since_ns.checked_sub(thread.known_ns)?;
        if sum(&thread.ns)? != known_ns {
            return None;
        }
        let until_ns = now_ns.max(thread.since_ns);
        let waits_for = WaitState::of_number(thread.state.into())?;
        let is_waiting = !matches!(waits_for, WaitState::Run | WaitState::Queue);
        let mut ns = thread.ns;
        let (state, state_since_ns) = if is_waiting && thread.woken_ns > thread.since_ns {
            let woken_ns = thread.woken_ns.min(until_ns);
            ns[waits_for.number()] += woken_ns - thread.since_ns;
            (WaitState::Queue, woken_ns)
        } else {
            (waits_for, thread.since_ns)
        };
        ns[state.number()] += until_ns - state_since_ns;
        Some(Self {
            pid: thread.tgid,
            tid,
            comm: sanitize(until_zero(&thread.comm)).into(),
            since_ns: thread.known_ns,
            until_ns,
            has_ended: false,
            state,
            state_since_ns,
            owner: Some(thread.owner_tid).filter(|owner| *owner != 0 && state.has_owner()),
            ns,
            times: thread.times,
            delays: thread.delays,
        })
    }

    /// Converts the state of a thread that has ended.
    pub(super) fn of_ended(ended: &EndedThread) -> Self {
        let thread = &ended.thread;
        Self {
            pid: thread.tgid,
            tid: ended.tid,
            comm: sanitize(until_zero(&thread.comm)).into(),
            since_ns: thread.known_ns,
            until_ns: thread.since_ns,
            has_ended: true,
            state: WaitState::Run,
            state_since_ns: thread.since_ns,
            owner: None,
            ns: thread.ns,
            times: thread.times,
            delays: thread.delays,
        }
    }

    /// Nanoseconds in a state.
    pub fn ns_in(&self, state: WaitState) -> u64 {
        self.ns[state.number()]
    }
}

fn sum(ns: &[u64]) -> Option<u64> {
    ns.iter().try_fold(0u64, |sum, ns| sum.checked_add(*ns))
}

/// The record of a thread that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedThread {
    tid: u32,
    thread: Thread,
}

impl EndedThread {
    /// Decodes the words; `None` if they are impossible for a thread.
    pub fn new(tid: u32, words: &[u64; THREAD_WORDS]) -> Option<Self> {
        let thread = thread_of_words(words);
        sum(&thread.ns)?;
        Some(Self { tid, thread })
    }
}

/// Decodes a [`Thread`] from its words.
fn thread_of_words(words: &[u64; THREAD_WORDS]) -> Thread {
    let mut thread = Thread {
        since_ns: words[0],
        woken_ns: words[1],
        known_ns: words[2],
        tgid: words[3] as u32,
        state: (words[3] >> 32) as u32,
        waker_tid: words[4] as u32,
        waker_tgid: (words[4] >> 32) as u32,
        ..Thread::UNKNOWN
    };
    let (comm, sums) = words[5..].split_at(2);
    for (bytes, word) in thread.comm.chunks_exact_mut(8).zip(comm) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let (ns, counts) = sums.split_at(state::COUNT);
    thread.ns.copy_from_slice(ns);
    let mut counts = counts
        .iter()
        .flat_map(|word| [*word as u32, (*word >> 32) as u32]);
    for (into, count) in thread
        .times
        .iter_mut()
        .chain(&mut thread.delays)
        .zip(&mut counts)
    {
        *into = count;
    }
    thread.owner_tid = counts.next().unwrap_or(0);
    thread
}

/// Counters of stacks of waits since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitCounters {
    /// Number of stacks that the kernel side wrote.
    pub taken: u64,
    /// Stacks for which the ring buffer was full: their number, and the nanoseconds that they stood
    /// for.
    pub lost: (u64, u64),
    /// Stacks beyond the maximum rate: their number, and the nanoseconds that they stood for.
    pub over_rate: (u64, u64),
    /// Stacks whose thread had already ended: their number, and the nanoseconds that they stood
    /// for.
    pub missed: (u64, u64),
    /// Number of waits that are not over and whose stack could not be taken.
    pub open_without_stack: u64,
    /// Number of threads that are not followed for lack of room.
    pub no_room: u64,
    /// Number of threads whose sums were lost when they ended.
    pub ends_lost: u64,
    /// Stacks of threads that ended waits which could not be taken: their number, and the
    /// nanoseconds that they stood for.
    pub wakes_lost: (u64, u64),
    /// Nanoseconds spent on taking stacks, without accounting.
    pub stacks_ns: u64,
    /// Waits without a stack, and without a similar one that stands for them: their number, and
    /// their nanoseconds. Only if switches are followed without BPF.
    pub unmet: (u64, u64),
    /// Number of switch records for which the ring was full, if there is no BPF.
    pub switches_lost: u64,
    /// Whether it is unknown who ends waits.
    pub lacks_wakers: bool,
}

impl WaitCounters {
    /// Reads the counters from the value of each slot.
    pub(super) fn of_slots(slot: impl Fn(u32) -> u64) -> Self {
        Self {
            taken: slot(counter::TAKEN),
            lost: (slot(counter::LOST), slot(counter::LOST_NS)),
            over_rate: (slot(counter::OVER_RATE), slot(counter::OVER_RATE_NS)),
            missed: (slot(counter::MISSED), slot(counter::MISSED_NS)),
            open_without_stack: 0,
            no_room: slot(counter::NO_ROOM),
            ends_lost: slot(counter::ENDS_LOST),
            wakes_lost: (slot(counter::WAKES_LOST), slot(counter::WAKES_LOST_NS)),
            stacks_ns: slot(counter::SPENT_NS),
            unmet: (0, 0),
            switches_lost: 0,
            lacks_wakers: false,
        }
    }

    /// Number of waits that were to give their stack.
    pub fn wanted(&self) -> u64 {
        self.taken + self.lost.0 + self.over_rate.0 + self.missed.0
    }

    /// Nanoseconds that stacks stand for which were wanted and could not be taken.
    pub fn without_stack_ns(&self) -> u64 {
        self.lost.1 + self.over_rate.1 + self.missed.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_arrives() {
        let words = [10, 2, 12, 1 << 32 | 2, 7 << 32 | 8, 7 << 32 | 9];
        let wait = RawWait::from_words(&words).unwrap();
        assert_eq!(wait.state, WaitState::Lock);
        assert_eq!((wait.weight_ns(), wait.away_ns), (12, 12));
        let by = |pid, tid| Some(Waker::Thread { pid, tid });
        assert_eq!((wait.waker, wait.owner), (by(7, 8), Some((7, 9))));
        let parts: Vec<_> = wait.parts().collect();
        assert_eq!(parts, [(WaitState::Lock, 10), (WaitState::Queue, 2)]);
        // The end is before the beginning.
        let none =
            RawWait::from_words(&[90, 0, -3i64 as u64, 1 << 32 | 2, 7 << 32 | 8, 0]).unwrap();
        assert_eq!((none.weight_ns(), none.away_ns), (0, 0));
        // A preempted thread is not woken, whichever thread woke it earlier.
        let preempted = RawWait::from_words(&[0, 5, 5, 1 << 32 | 1, 7 << 32 | 8, 0]).unwrap();
        assert_eq!(preempted.waker, None);
        let ended_by = |end: u64| RawWait::from_words(&[5, 0, 5, end << 32 | 2, 0, 0]).unwrap();
        assert_eq!(ended_by(0).waker, None);
        assert_eq!(ended_by(2).waker, Some(Waker::Timer));
        assert_eq!(ended_by(3).waker, Some(Waker::Interrupt));
        // The idle task does not count as a thread.
        assert_eq!(ended_by(1).waker, None);
        assert_eq!(preempted.parts().count(), 1);
        assert_eq!(RawWait::from_words(&[1, 1, 1, 99, 0, 0]), None);
    }

    fn asleep() -> Thread {
        let mut thread = Thread {
            known_ns: 100,
            since_ns: 150,
            tgid: 7,
            state: state::SLEEP,
            ..Thread::UNKNOWN
        };
        thread.ns[WaitState::Run.number()] = 50;
        thread
    }

    #[test]
    fn what_a_thread_is_doing_now_counts() {
        let totals = ThreadTotals::of_living(8, &asleep(), 180).unwrap();
        assert_eq!(totals.state, WaitState::Sleep);
        assert_eq!(totals.ns_in(WaitState::Sleep), 30);
        let woken = Thread {
            woken_ns: 170,
            ..asleep()
        };
        let totals = ThreadTotals::of_living(8, &woken, 180).unwrap();
        assert_eq!(totals.state, WaitState::Queue);
        assert_eq!(totals.ns_in(WaitState::Sleep), 20);
        assert_eq!(totals.ns_in(WaitState::Queue), 10);
        for now_ns in [0, 150, 160, 170, 180, u64::MAX] {
            let totals = ThreadTotals::of_living(8, &woken, now_ns).unwrap();
            let all = totals.ns.iter().sum::<u64>();
            assert_eq!(all, totals.until_ns - totals.since_ns, "at {now_ns}");
        }
    }

    #[test]
    fn what_is_of_two_moments_is_not_told() {
        let torn = Thread {
            since_ns: 151,
            ..asleep()
        };
        assert_eq!(ThreadTotals::of_living(8, &torn, 180), None);
        let mut huge = asleep();
        huge.ns = [u64::MAX; state::COUNT];
        assert_eq!(ThreadTotals::of_living(8, &huge, 180), None);
    }

    #[test]
    fn a_thread_arrives_as_words() {
        let mut words = [0; THREAD_WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = index as u64;
        }
        words[3] = 2 << 32 | 77;
        words[5] = u64::from_le_bytes(*b"postgres");
        words[6] = 0;
        let thread = thread_of_words(&words);
        assert_eq!(
            (thread.since_ns, thread.woken_ns, thread.known_ns),
            (0, 1, 2)
        );
        assert_eq!((thread.tgid, thread.state), (77, 2));
        assert_eq!(until_zero(&thread.comm), b"postgres");
        assert_eq!((thread.ns[0], thread.times[0]), (7, 18));
        // Two values in each word: first those of the states, then the delays.
        assert_eq!((thread.times[1], thread.times[2]), (0, 19));
        assert_eq!((thread.delays[0], thread.delays[1]), (0, 24));
        assert_eq!(
            (thread.delays[14], thread.delays[15], thread.owner_tid),
            (0, 31, 0)
        );
        words[31] = 9 << 32;
        assert_eq!(thread_of_words(&words).owner_tid, 9);
        let ended = EndedThread::new(9, &words).unwrap();
        let totals = ThreadTotals::of_ended(&ended);
        assert_eq!((totals.pid, totals.tid, &*totals.comm), (77, 9, "postgres"));
        words[7] = u64::MAX;
        assert_eq!(EndedThread::new(9, &words), None);
    }
}
