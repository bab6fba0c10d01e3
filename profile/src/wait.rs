//! A *wait*: a period in which a thread was on no CPU; and the statistics of many waits.
//!
//! A thread that is woken may have to wait once more, in the queue for a CPU. Both are parts of one
//! wait, and each has its own sample, as they are time in two states:
//!
//! ```text
//!   ├──────── for a lock: WaitPart::first ────────┤── in the queue: WaitPart::second ──┤
//!   ├───────────────────────────────── one wait ──────────────────────────────────────┤
//! ```
//!
//! Long waits are reported before they end ([`WaitPart::open`]), a piece at a time. Their time
//! counts as it passes, the wait itself when it ends.

/// Number of [`STATES`].
pub const STATE_COUNT: usize = 11;

/// The states of a thread, one word each: on a CPU; waiting for a CPU, a lock, a disk, a socket or
/// pipe, a timer, a page of memory; stopped; waiting for something else; waiting for the global
/// lock of Python; waiting for CPU time that its control group may use.
pub const STATES: [&str; STATE_COUNT] = [
    "run", "queue", "lock", "disk", "net", "sleep", "fault", "stopped", "other", "gil", "quota",
];

/// Index of running in [`STATES`].
pub(crate) const RUN: usize = 0;

/// Index of waiting for a CPU in [`STATES`].
const QUEUE: usize = 1;

/// The module of the frames on top of waiting stacks: each says what the thread waits for.
pub const WAITING_MODULE: &str = "[waiting]";

/// The name of the frame on top of a stack that waits in this state.
pub fn waiting_name(state: &str) -> String {
    format!("[waiting: {state}]")
}

/// What a thread, or the threads of a process together, did in a window: every moment was in one of
/// [`STATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Nanoseconds in each state.
    pub ns: [u64; STATE_COUNT],
    /// How long it waited for a CPU each time.
    pub delays: Delays,
    /// The thread's state at the end of the window; `None` for several threads.
    pub now: Option<Now>,
}

/// Number of slots in which waits for a CPU are counted.
pub const DELAY_SLOTS: usize = 16;

/// Number of waits for a CPU in each slot of lengths. The first slot ends at 4,096 ns, each other
/// one at twice the end of the one before; the last one has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays(pub [u32; DELAY_SLOTS]);

/// Length of a wait for a CPU, as exactly as the slots tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The end of its slot, in nanoseconds; for the last slot twice its beginning.
    pub ns: u64,
    /// Whether it is in the last slot, so that it may have been longer.
    pub has_no_end: bool,
}

impl Delays {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Delays) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The length that `percent` of the waits did not exceed; `None` if there was no wait.
    pub fn percentile(&self, percent: u64) -> Option<Delay> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut sum = 0;
        let slot = self.0.iter().position(|count| {
            sum += u64::from(*count);
            sum >= wanted
        })?;
        Some(Delay {
            ns: 4096 << slot,
            has_no_end: slot + 1 == DELAY_SLOTS,
        })
    }
}

/// The current state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Index in [`STATES`].
    pub state: usize,
    /// Time in that state so far, in nanoseconds.
    pub for_ns: u64,
    /// Whether it was in that state when it was first seen, so that the time is longer than
    /// `for_ns`.
    pub is_longer: bool,
    /// The thread that holds the lock that it waits for; `None` if it does not wait for a lock, or
    /// if the holder is unknown.
    pub owner: Option<u32>,
}

impl Activity {
    /// Adds the activity of another thread.
    pub fn add(&mut self, other: &Activity) {
        for (sum, ns) in self.ns.iter_mut().zip(other.ns) {
            *sum = sum.saturating_add(ns);
        }
        self.delays.add(&other.delays);
    }

    /// The states that occurred, each as index in [`STATES`] and nanoseconds.
    pub fn states(&self) -> impl Iterator<Item = (usize, u64)> {
        self.ns.into_iter().enumerate().filter(|(_, ns)| *ns > 0)
    }

    /// The state and its time, if the thread is waiting for something other than a CPU.
    pub fn open_wait(&self) -> Option<Now> {
        self.now.filter(|now| now.state > QUEUE)
    }
}

/// What one sample tells about a wait, in addition to the time that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitPart {
    /// Length of this part; 0 for a sample that is not of a wait.
    length_ns: u64,
    /// Length of the other part: positive if it was before this one, negative if after; 0 if this
    /// is the whole wait. [`OPEN`] if the wait is not over.
    other_ns: i64,
}

/// Marks a wait that is not over; no real length has this value.
const OPEN: i64 = i64::MIN;

/// Every wait of this length or longer gives its stack when it ends, and pieces of it may have been
/// reported before. Only shorter waits are sampled at random.
const TOLD_NS: u64 = 1_400_000_000;

impl WaitPart {
    /// A sample that is not of a wait.
    pub const NONE: WaitPart = WaitPart {
        length_ns: 0,
        other_ns: 0,
    };

    /// A whole wait of that length.
    pub fn whole(length_ns: u64) -> Self {
        Self::of(length_ns, 0)
    }

    /// The part of a wait before its thread was woken, if the thread then had to wait for a CPU.
    pub fn first(length_ns: u64, second_ns: u64) -> Self {
        let second_ns = i64::try_from(second_ns).unwrap_or(i64::MAX);
        Self::of(length_ns, -second_ns)
    }

    /// The part of a wait after its thread was woken.
    pub fn second(length_ns: u64, first_ns: u64) -> Self {
        Self::of(length_ns, i64::try_from(first_ns).unwrap_or(i64::MAX))
    }

    /// A piece of a wait that is not over and has lasted this long.
    pub fn open(length_ns: u64) -> Self {
        Self::of(length_ns, OPEN)
    }

    /// How much of the `weight_ns` that a sample stands for is due to random sampling: 0 for a wait
    /// that always gives its stack, all of it for a sample that is not of a wait.
    pub(crate) fn by_chance_ns(self, weight_ns: u64) -> u64 {
        let whole_ns = self.length_ns.saturating_add(self.other_ns.unsigned_abs());
        match self {
            _ if self.length_ns == 0 => weight_ns,
            _ if self.other_ns == OPEN || whole_ns >= TOLD_NS => 0,
            _ => weight_ns.saturating_sub(self.length_ns),
        }
    }

    /// Converts from the numbers stored in a recording.
    pub(crate) fn of(length_ns: u64, other_ns: i64) -> Self {
        Self {
            length_ns,
            other_ns,
        }
    }

    /// The numbers that [`WaitPart::of`] converts from.
    pub(crate) fn numbers(self) -> (u64, i64) {
        (self.length_ns, self.other_ns)
    }
}

/// Statistics of many waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Number of waits that ended. A stack that was sampled at random, because its wait was short,
    /// stands for all waits that were equally likely to be sampled.
    pub count: u64,
    /// Number of waits whose stack was taken.
    pub drawn: u64,
    /// Whether some of these stand for more than themselves, so that `count` is an estimate.
    pub is_estimate: bool,
    /// Nanoseconds in all of them, from their beginning on.
    pub ns: u64,
    /// The longest wait whose stack was taken, in nanoseconds; the length so far if it is not over.
    pub longest_ns: u64,
    /// Whether the longest wait is not over, and so longer than that.
    pub longest_is_open: bool,
}

impl Waits {
    /// Mean nanoseconds of one wait; `None` if none has ended. The number of waits is rounded: a
    /// wait of 4 ms that stands for 5 ms counts as one, although no wait took 5 ms.
    pub fn mean_ns(&self) -> Option<u64> {
        let mean_ns = self.ns.checked_div(self.count)?;
        Some(if self.longest_is_open {
            mean_ns
        } else {
            mean_ns.min(self.longest_ns)
        })
    }

    /// Whether every wait was seen, so that the count is not an estimate.
    pub fn is_exact(&self) -> bool {
        !self.is_estimate
    }
}

/// Relative error that a sum of many quotients may have.
const ROUNDING: f64 = 1e-9;

/// Sums up waits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitSum {
    whole: Counted,
    first: Counted,
    second: Counted,
    ns: u64,
    /// Number of samples of waits that are not over.
    open: u64,
    longest_part_ns: u64,
    /// The longest wait, including the first part for a second part.
    longest_ns: u64,
    /// The longest wait among those that are not over.
    longest_open_ns: u64,
}

/// Number of waits, and of the samples that they were counted from.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// Number of waits. It has fractions: a wait of 3 ms that stands for 5 ms is 1.67.
    waits: f64,
    drawn: u64,
}

impl Counted {
    fn add(&mut self, other: Counted) {
        self.waits += other.waits;
        self.drawn += other.drawn;
    }
}

impl WaitSum {
    /// Adds a sample that stands for `weight_ns` nanoseconds.
    pub(crate) fn add_part(&mut self, part: WaitPart, weight_ns: u64) {
        let length_ns = part.length_ns;
        if length_ns == 0 {
            return;
        }
        if part.other_ns == OPEN {
            self.open += 1;
            self.longest_open_ns = self.longest_open_ns.max(length_ns);
            return;
        }
        self.longest_part_ns = self.longest_part_ns.max(length_ns);
        // Some of it may have been reported before.
        let whole_ns = match length_ns.saturating_add(part.other_ns.unsigned_abs()) {
            TOLD_NS.. => length_ns,
            _ => weight_ns,
        };
        let counted = Counted {
            waits: whole_ns as f64 / length_ns as f64,
            drawn: 1,
        };
        match part.other_ns {
            0 => self.whole.add(counted),
            ..0 => self.first.add(counted),
            1.. => self.second.add(counted),
        }
        self.ns = self.ns.saturating_add(whole_ns);
        let with_first_ns = length_ns.saturating_add_signed(part.other_ns.max(0));
        self.longest_ns = self.longest_ns.max(with_first_ns);
    }

    /// Adds all of another sum.
    pub(crate) fn add(&mut self, other: &WaitSum) {
        self.whole.add(other.whole);
        self.first.add(other.first);
        self.second.add(other.second);
        self.ns = self.ns.saturating_add(other.ns);
        self.open += other.open;
        self.longest_part_ns = self.longest_part_ns.max(other.longest_part_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.longest_open_ns = self.longest_open_ns.max(other.longest_open_ns);
    }

    /// The resulting statistics; `None` if no sample was of a wait. Usually both parts of each wait
    /// are included, or those of one kind alone: for the queue, one wants to know how often threads
    /// were in it.
    pub(crate) fn waits(&self) -> Option<Waits> {
        let is_paired = self.first.drawn >= self.second.drawn;
        let mut counted = if is_paired { self.first } else { self.second };
        counted.add(self.whole);
        let over_ns = if is_paired {
            self.longest_ns
        } else {
            self.longest_part_ns
        };
        (counted.drawn > 0 || self.open > 0).then(|| Waits {
            // At least the number of waits that are known to have occurred.
            count: (counted.waits.round() as u64).max(counted.drawn),
            drawn: counted.drawn,
            is_estimate: counted.waits > counted.drawn as f64 * (1.0 + ROUNDING),
            ns: self.ns,
            longest_ns: over_ns.max(self.longest_open_ns),
            longest_is_open: self.longest_open_ns > over_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_wait_of_two_parts_is_one() {
        let mut sum = WaitSum::default();
        assert_eq!(sum.waits(), None);
        sum.add_part(WaitPart::NONE, 7);
        assert_eq!(sum.waits(), None);
        sum.add_part(WaitPart::first(30 * MS, 10 * MS), 30 * MS);
        let queued = WaitPart::second(10 * MS, 30 * MS);
        sum.add_part(queued, 10 * MS);
        let waits = sum.waits().unwrap();
        assert_eq!((waits.count, waits.drawn), (1, 1));
        assert_eq!(
            (waits.mean_ns(), waits.longest_ns),
            (Some(40 * MS), 40 * MS)
        );
        assert!(waits.is_exact());
        // A thread that was preempted on the same stack.
        sum.add_part(WaitPart::whole(2 * MS), 2 * MS);
        let waits = sum.waits().unwrap();
        assert_eq!((waits.count, waits.mean_ns()), (2, Some(21 * MS)));
    }

    #[test]
    fn in_the_queue_alone_each_time_there_counts() {
        let mut queue = WaitSum::default();
        queue.add_part(WaitPart::second(10 * MS, 30 * MS), 10 * MS);
        queue.add_part(WaitPart::second(8 * MS, 30 * MS), 8 * MS);
        queue.add_part(WaitPart::whole(6 * MS), 6 * MS);
        let waits = queue.waits().unwrap();
        assert_eq!((waits.count, waits.mean_ns()), (3, Some(8 * MS)));
        assert_eq!(waits.longest_ns, 10 * MS);
        // Together with the first parts, it is the waits that are counted.
        let mut all = WaitSum::default();
        all.add_part(WaitPart::first(30 * MS, 10 * MS), 30 * MS);
        all.add_part(WaitPart::first(30 * MS, 8 * MS), 30 * MS);
        all.add(&queue);
        let waits = all.waits().unwrap();
        assert_eq!((waits.count, waits.longest_ns), (3, 40 * MS));
    }

    #[test]
    fn a_wait_counts_when_it_ends() {
        let mut sum = WaitSum::default();
        for second in 2..5 {
            sum.add_part(WaitPart::open(second * 1000 * MS), 1000 * MS);
        }
        let open = sum.waits().unwrap();
        assert_eq!((open.count, open.mean_ns()), (0, None));
        assert_eq!((open.longest_ns, open.longest_is_open), (4000 * MS, true));
        // Most of it was reported before.
        sum.add_part(WaitPart::first(4500 * MS, 10 * MS), 500 * MS);
        sum.add_part(WaitPart::second(10 * MS, 4500 * MS), 10 * MS);
        let over = sum.waits().unwrap();
        assert!(over.is_exact());
        assert_eq!((over.count, over.mean_ns()), (1, Some(4510 * MS)));
        assert_eq!((over.longest_ns, over.longest_is_open), (4510 * MS, false));
    }

    #[test]
    fn percentiles_are_the_ends_of_slots() {
        let mut delays = Delays::default();
        assert_eq!(delays.percentile(50), None);
        delays.0[0] = 98;
        delays.0[3] = 1;
        delays.0[DELAY_SLOTS - 1] = 1;
        let ns = |percent| delays.percentile(percent).map(|delay| delay.ns);
        assert_eq!(
            (ns(50), ns(98), ns(99)),
            (Some(4096), Some(4096), Some(4096 << 3))
        );
        assert!(delays.percentile(100).unwrap().has_no_end);
        let mut both = delays;
        both.add(&delays);
        assert_eq!(both.0[0], 196);
    }

    #[test]
    fn only_what_was_drawn_is_there_by_chance() {
        assert_eq!(WaitPart::NONE.by_chance_ns(7), 7);
        assert_eq!(WaitPart::whole(3 * MS).by_chance_ns(3 * MS), 0);
        assert_eq!(WaitPart::whole(MS).by_chance_ns(10 * MS), 9 * MS);
        assert_eq!(WaitPart::open(MS).by_chance_ns(10 * MS), 0);
        assert_eq!(WaitPart::first(1500 * MS, MS).by_chance_ns(1500 * MS), 0);
    }

    #[test]
    fn a_wait_that_stands_for_a_little_more_is_an_estimate() {
        let mut sum = WaitSum::default();
        sum.add_part(WaitPart::whole(4 * MS), 5 * MS);
        let waits = sum.waits().unwrap();
        assert_eq!((waits.count, waits.drawn), (1, 1));
        assert_eq!((waits.mean_ns(), waits.longest_ns), (Some(4 * MS), 4 * MS));
        assert!(!waits.is_exact());
    }

    #[test]
    fn a_short_wait_stands_for_many() {
        let mut sum = WaitSum::default();
        for _ in 0..3 {
            // Sampled as one of forty, and so counted as a whole period of 10 ms.
            sum.add_part(WaitPart::whole(MS / 4), 10 * MS);
        }
        let waits = sum.waits().unwrap();
        assert_eq!((waits.count, waits.drawn), (120, 3));
        assert_eq!((waits.mean_ns(), waits.longest_ns), (Some(MS / 4), MS / 4));
        assert!(!waits.is_exact());
    }
}
