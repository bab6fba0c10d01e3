//! A *wait*: a stretch of time in which a thread was on no CPU, and what is counted of
//! many of them.
//!
//! A thread that is woken may have to wait once more, in the queue for a CPU. Both are
//! parts of one wait, and have a sample each, as they are time in two states:
//!
//! ```text
//!   ├──────── for a lock: WaitPart::first ────────┤── in the queue: WaitPart::second ──┤
//!   ├───────────────────────────────── one wait ──────────────────────────────────────┤
//! ```
//!
//! Long waits are told before they end ([`WaitPart::open`]), a piece at a time. Their time counts
//! as it passes, and the wait itself when it ends.

/// How many [`STATES`] there are.
pub const STATE_COUNT: usize = 11;

/// What a thread can be doing, in a word each: it is on a CPU, waits for one, for a lock, a
/// disk, a socket or pipe, a timer, a page of memory, was stopped, waits for something else,
/// for the global lock of Python, for CPU time that its control group may use.
pub const STATES: [&str; STATE_COUNT] = [
    "run", "queue", "lock", "disk", "net", "sleep", "fault", "stopped", "other", "gil", "quota",
];

/// The place of running in [`STATES`].
pub(crate) const RUN: usize = 0;

/// The place of waiting for a CPU.
const QUEUE: usize = 1;

/// The module of the frames on top of stacks that wait: each says for what.
pub const WAITING_MODULE: &str = "[waiting]";

/// The name of the frame on top of a stack that waits in a state.
pub fn waiting_name(state: &str) -> String {
    format!("[waiting: {state}]")
}

/// What a thread did in a window, or the threads of a process together: every moment was in
/// one of [`STATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Nanoseconds in each state.
    pub ns: [u64; STATE_COUNT],
    /// How long it was ready before it ran.
    pub delays: Delays,
    /// What the thread did at the end of the window; `None` for several threads.
    pub now: Option<Now>,
}

/// How many slots times in the queue are counted in.
pub const DELAY_SLOTS: usize = 16;

/// Times in the queue for a CPU: how many lie in each slot. The first slot ends at 4,096 ns,
/// each other one at twice the end of the one before, the last one never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays(pub [u32; DELAY_SLOTS]);

/// How long a time in the queue was, as far as the slots tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The end of its slot, in nanoseconds; of the last slot the double of its beginning.
    pub ns: u64,
    /// It is in the last slot: it may have been longer.
    pub has_no_end: bool,
}

impl Delays {
    /// Adds what another thread had.
    pub fn add(&mut self, other: &Delays) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The time that so many percent did not exceed; `None` if there was none.
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

/// What a thread does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Its place in [`STATES`].
    pub state: usize,
    /// For how long it has been doing that, in nanoseconds.
    pub for_ns: u64,
    /// It did so already when it was seen first: for longer than `for_ns`.
    pub is_longer: bool,
    /// The thread that has the lock which it waits for; `None` if it waits for none, or that
    /// is not known.
    pub owner: Option<u32>,
}

impl Activity {
    /// Adds what another thread did.
    pub fn add(&mut self, other: &Activity) {
        for (sum, ns) in self.ns.iter_mut().zip(other.ns) {
            *sum = sum.saturating_add(ns);
        }
        self.delays.add(&other.delays);
    }

    /// The states that there was time in, each with its place in [`STATES`].
    pub fn states(&self) -> impl Iterator<Item = (usize, u64)> {
        self.ns.into_iter().enumerate().filter(|(_, ns)| *ns > 0)
    }

    /// What the thread waits for, and since how long, if that is no CPU.
    pub fn open_wait(&self) -> Option<Now> {
        self.now.filter(|now| now.state > QUEUE)
    }
}

/// What one sample tells of a wait, beside the time that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitPart {
    /// 0 for a sample that is of no wait.
    length_ns: u64,
    /// How long the other part was: above zero the one before this, below zero the one
    /// behind it; 0 if this is the whole wait. [`OPEN`] if the wait is not over.
    other_ns: i64,
}

/// The other part of a wait that is not over: no wait is so long.
const OPEN: i64 = i64::MIN;

/// Every wait of this length or longer gives its stack when it ends, and may have been told in
/// part before. Whoever samples draws only among shorter ones.
const TOLD_NS: u64 = 1_400_000_000;

impl WaitPart {
    /// A sample that is of no wait.
    pub const NONE: WaitPart = WaitPart {
        length_ns: 0,
        other_ns: 0,
    };

    /// A whole wait, which really was so long.
    pub fn whole(length_ns: u64) -> Self {
        Self::of(length_ns, 0)
    }

    /// The part of a wait before its thread was woken, if it then had to wait on.
    pub fn first(length_ns: u64, second_ns: u64) -> Self {
        let second_ns = i64::try_from(second_ns).unwrap_or(i64::MAX);
        Self::of(length_ns, -second_ns)
    }

    /// The part of a wait behind that.
    pub fn second(length_ns: u64, first_ns: u64) -> Self {
        Self::of(length_ns, i64::try_from(first_ns).unwrap_or(i64::MAX))
    }

    /// A piece of a wait that is not over and has been as long as this by now.
    pub fn open(length_ns: u64) -> Self {
        Self::of(length_ns, OPEN)
    }

    /// How many of so many nanoseconds that a sample stands for chance has added: none of a wait
    /// that always gives its stack, all of a sample that is of no wait.
    pub(crate) fn by_chance_ns(self, weight_ns: u64) -> u64 {
        let whole_ns = self.length_ns.saturating_add(self.other_ns.unsigned_abs());
        match self {
            _ if self.length_ns == 0 => weight_ns,
            _ if self.other_ns == OPEN || whole_ns >= TOLD_NS => 0,
            _ => weight_ns.saturating_sub(self.length_ns),
        }
    }

    /// As a recording has it.
    pub(crate) fn of(length_ns: u64, other_ns: i64) -> Self {
        Self {
            length_ns,
            other_ns,
        }
    }

    /// What [`WaitPart::of`] makes it from.
    pub(crate) fn numbers(self) -> (u64, i64) {
        (self.length_ns, self.other_ns)
    }
}

/// What is known of many waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// How many ended. A stack that was drawn by chance, as its wait was short, stands
    /// for all the waits that were as likely to be drawn.
    pub count: u64,
    /// How many of them gave their stack.
    pub drawn: u64,
    /// Whether some of those stand for more than themselves, so that `count` is an estimate.
    pub is_estimate: bool,
    /// Nanoseconds in all of them, from their beginning on.
    pub ns: u64,
    /// The longest that gave its stack, in nanoseconds; of one that is not over as long as it
    /// was by then.
    pub longest_ns: u64,
    /// The longest is not over: it is longer than that.
    pub longest_is_open: bool,
}

impl Waits {
    /// Nanoseconds of one wait; `None` if none has ended. The number of waits is rounded: a
    /// wait of 4 ms that stands for 5 ms counts as one, and no wait was of 5 ms.
    pub fn mean_ns(&self) -> Option<u64> {
        let mean_ns = self.ns.checked_div(self.count)?;
        Some(if self.longest_is_open {
            mean_ns
        } else {
            mean_ns.min(self.longest_ns)
        })
    }

    /// Whether every wait was seen, so that the count is no estimate.
    pub fn is_exact(&self) -> bool {
        !self.is_estimate
    }
}

/// By such a share of it a sum of many quotients may be off.
const ROUNDING: f64 = 1e-9;

/// A sum of waits while it is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitSum {
    whole: Counted,
    first: Counted,
    second: Counted,
    ns: u64,
    /// Samples of waits that are not over.
    open: u64,
    longest_part_ns: u64,
    /// With the first part, where it is a second one.
    longest_ns: u64,
    /// Of those that are not over.
    longest_open_ns: u64,
}

/// Waits, and how many samples tell of them.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// A part of a wait counts too: a wait of 3 ms that stands for 5 ms is 1.67.
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
    /// Adds a sample that stands for so many nanoseconds.
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
        // Some of it may have been told before.
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

    /// What it comes to; `None` if no sample was of a wait. As a rule both parts of a wait
    /// are here, or those of one kind alone: who looks at the queue wants to know how often
    /// threads were in it.
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
            // Those that are known to have been are the least.
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
        // With the parts before it is the waits that count.
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
        // Most of it was told before.
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
            // Drawn as one of forty, and so counted as a whole period of 10 ms.
            sum.add_part(WaitPart::whole(MS / 4), 10 * MS);
        }
        let waits = sum.waits().unwrap();
        assert_eq!((waits.count, waits.drawn), (120, 3));
        assert_eq!((waits.mean_ns(), waits.longest_ns), (Some(MS / 4), MS / 4));
        assert!(!waits.is_exact());
    }
}
