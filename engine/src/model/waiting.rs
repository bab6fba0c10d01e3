//! Waits in the model: two more metrics, and what each thread did in a window.
//!
//! *Off-CPU* counts nanoseconds that threads waited, *wall* those and the ones that
//! they ran. Both are events of the store beside the clock's ticks, so every view and
//! filter works on them. A stack that waited has one more frame on top, which says for
//! what:
//!
//! ```text
//! [waiting: lock] ← futex_wait ← … ← worker ← main        30 ms, off-CPU and wall
//! [waiting: queue] ← futex_wait ← … ← worker ← main       10 ms: ready, and no CPU free
//! parse ← worker ← main                                   10 ms, a tick: wall only
//! ```
//!
//! What each thread did does not come from stacks: the kernel side keeps sums of time
//! by state for every thread. They are read once a second and kept for windows of
//! reports.

use crate::settings::Counted;
use crate::snapshot::{Held, HeldBy, Stretch, ThreadStates, Waited};
use probe::{Batch, RawWait, ThreadTotals, WaitCounters, WaitState};
use profile::{
    DELAY_SLOTS, Delays, EventId, Frame, FrameKind, Metric, ModuleId, NameState, NewSample, Store,
    WAITING_MODULE, WaitPart, Window, waiting_name,
};
use std::collections::{BTreeMap, VecDeque};

/// The module of the frames that say what was waited for. No module of a program has this
/// number: they count from 0.
const MODULE: ModuleId = ModuleId(u32::MAX);

/// How many readings of a thread's sums are kept, one a second: windows of reports are
/// shorter.
const READINGS_MAX: usize = 130;

/// Pairs of a waiting thread and its waker that a report has; beyond, those that waited
/// least are left out.
const HOLDERS_MAX: usize = 4096;

/// Waits with a known waker that are kept; beyond, the oldest are dropped.
const HELD_MAX: usize = 16 * HOLDERS_MAX;

/// What was counted of waits.
pub struct Waiting {
    off_cpu: EventId,
    wall: EventId,
    counted: Counted,
    /// By thread id.
    threads: BTreeMap<u32, Course>,
    /// Time, and what stacks say that was waited then for whom.
    held: VecDeque<(u64, Held)>,
    /// What could not be had, in the whole run.
    counters: WaitCounters,
    /// Waited time that stacks stand for, in the whole run.
    sampled_ns: u64,
}

/// The sums of a thread at some time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time_ns: u64,
    /// Nanoseconds in each state by then.
    ns: [u64; WaitState::ALL.len()],
    /// How often its time in the queue was in each slot by then.
    delays: [u32; DELAY_SLOTS],
}

/// The sums of a thread as time went on.
///
/// A thread id may be given to another thread: a reading that began at another time is
/// of that one, and the course begins anew.
struct Course {
    newest: ThreadTotals,
    /// What its sums were at some times.
    readings: VecDeque<Reading>,
    /// What it did most between each reading and the one before.
    stretches: VecDeque<Stretch>,
}

impl Waiting {
    /// `None` if nothing is to be counted of waits.
    pub fn new(counted: Counted, store: &mut Store) -> Option<Self> {
        if !counted.has_waits() {
            return None;
        }
        // In the order of `Counted`.
        let off_cpu = store.add_event(Metric::off_cpu())?;
        let wall = store.add_event(Metric::wall())?;
        Some(Self {
            off_cpu,
            wall,
            counted,
            threads: BTreeMap::new(),
            held: VecDeque::new(),
            counters: WaitCounters::default(),
            sampled_ns: 0,
        })
    }

    /// The event that reports count.
    pub fn event(&self) -> EventId {
        match self.counted {
            Counted::OnCpu => EventId::FIRST,
            Counted::OffCpu => self.off_cpu,
            Counted::Wall => self.wall,
        }
    }

    /// Counts a tick of the clock as running time in the metric *wall*; a tick stands for
    /// `ns` nanoseconds.
    pub fn add_tick(&self, sample: NewSample<'_>, ns: u64, store: &mut Store) {
        let weight = sample.weight.saturating_mul(ns);
        store.add_sample_of(self.wall, NewSample { weight, ..sample });
    }

    /// Counts a wait, with a frame on top that says for what it was.
    pub fn add_wait(&mut self, sample: NewSample<'_>, wait: RawWait, store: &mut Store) {
        // It leaves the store with its last frame.
        if !store.has_module(MODULE) {
            store.add_module(MODULE, WAITING_MODULE, WAITING_MODULE);
        }
        let untold_ns = wait.weight_ns().saturating_sub(wait.told_ns);
        self.sampled_ns = self.sampled_ns.saturating_add(untold_ns);
        for (state, ns) in wait.parts() {
            let mut frames = Vec::with_capacity(sample.frames.len() + 1);
            frames.push(Frame {
                module: MODULE,
                address: state.number() as u64,
                kind: FrameKind::Kernel,
            });
            frames.extend(sample.frames);
            let sample = NewSample {
                frames: &frames,
                kernel_frames: sample.kernel_frames + 1,
                weight: ns,
                ..sample
            };
            let part = part_of(wait, state);
            store.add_wait_of(self.off_cpu, sample, part);
            store.add_wait_of(self.wall, sample, part);
        }
        // Who had the lock made it wait; who gave it back is the same, or another one that
        // had it later. Who wakes it is known when the wait is over.
        let owner = wait.owner;
        let owner = owner.map(|thread| {
            (
                HeldBy::Owner,
                thread,
                wait.waited_ns.saturating_sub(wait.told_ns),
            )
        });
        let waker = wait.waker.filter(|_| has_waker(wait.state));
        let waker = waker.map(|thread| (HeldBy::Waker, thread, wait.waited_ns));
        if let Some((by, (holder, holder_thread), ns)) = owner.or(waker) {
            let held = Held {
                waiter: sample.tid,
                holder,
                holder_thread,
                by,
                state: wait.state,
                ns,
                waits: u64::from(!wait.is_open),
            };
            self.held.push_back((sample.time_ns, held));
        }
    }

    /// Names those of `frames` that say what was waited for, and returns the others.
    pub fn name(frames: Vec<profile::FrameId>, store: &mut Store) -> Vec<profile::FrameId> {
        if !store.has_module(MODULE) {
            return frames;
        }
        let state_of = |store: &Store, id| {
            let frame = store.frame(id)?;
            (frame.module == MODULE).then(|| WaitState::of_number(frame.address))?
        };
        let mut others = Vec::with_capacity(frames.len());
        for id in frames {
            match state_of(store, id) {
                Some(state) => {
                    let name = waiting_name(state.word());
                    store.set_name(id, NameState::Named(name.into()));
                }
                None => others.push(id),
            }
        }
        others
    }

    /// Takes what is new of threads.
    pub fn add_batch(&mut self, batch: &Batch) {
        self.counters = batch.waits;
        for totals in &batch.threads {
            let course = self.threads.entry(totals.tid);
            let course = course.or_insert_with(|| Course::begin(totals));
            if course.newest.since_ns != totals.since_ns {
                // Another thread has its number.
                *course = Course::begin(totals);
            }
            course.go_on(totals);
        }
        if !batch.threads.is_empty() {
            self.forget_the_old(batch.complete_until_ns);
        }
    }

    /// Drops threads that ended longer ago than any window reaches back, and waits as
    /// old.
    fn forget_the_old(&mut self, now_ns: u64) {
        let oldest_ns = now_ns.saturating_sub(READINGS_MAX as u64 * 1_000_000_000);
        self.threads
            .retain(|_, course| !course.newest.has_ended || course.newest.until_ns >= oldest_ns);
        self.held.retain(|(time_ns, _)| *time_ns >= oldest_ns);
        let surplus = self.held.len().saturating_sub(HELD_MAX);
        self.held.drain(..surplus);
    }

    /// What threads did in a window, and for whom they waited. Sums are read once a second:
    /// those that are nearest are taken.
    pub fn waited(&self, window: Window) -> Waited {
        let threads = { self.threads.values() }.filter_map(|course| course.between(window));
        let mut pairs = BTreeMap::new();
        let held = { self.held.iter() }
            .filter(|(time_ns, _)| *time_ns > window.start_ns && *time_ns <= window.end_ns);
        for (_, held) in held {
            let key = (held.waiter, held.holder_thread, held.by, held.state);
            let sum = pairs.entry(key).or_insert(Held {
                ns: 0,
                waits: 0,
                ..*held
            });
            sum.ns += held.ns;
            sum.waits += held.waits;
        }
        let mut holders: Vec<Held> = pairs.into_values().collect();
        holders.sort_by_key(|held| std::cmp::Reverse(held.ns));
        holders.truncate(HOLDERS_MAX);
        Waited {
            window,
            threads: threads.collect(),
            holders,
        }
    }

    /// Sentences: what could not be had, and why.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let counters = &self.counters;
        let all_ns = self.sampled_ns.saturating_add(counters.without_stack_ns());
        let share = |ns: u64| 100.0 * ns as f64 / all_ns.max(1) as f64;
        let lost = |(waits, ns): (u64, u64), why: &str| {
            let share = share(ns);
            (waits > 0)
                .then(|| format!("{waits} waits, {share:.1}% of the time, lack stacks: {why}"))
        };
        let open = counters.open_without_stack > 0;
        let open = open.then(|| {
            let waits = counters.open_without_stack;
            format!("{waits} waits that were not over have no stack: there are too many, or it could not be read")
        });
        let no_room = counters.no_room > 0;
        let no_room = no_room.then(|| {
            format!(
                "{} threads are not followed: there is no room for more",
                counters.no_room
            )
        });
        let ends = counters.ends_lost > 0;
        let ends =
            ends.then(|| format!("the last sums of {} threads were lost", counters.ends_lost));
        [
            lost(counters.lost, "the ring buffer was full"),
            lost(counters.over_rate, "there were too many in a second"),
            lost(
                counters.missed,
                "the thread was gone before it could be taken",
            ),
            open,
            no_room,
            ends,
        ]
        .into_iter()
        .flatten()
    }
}

/// How long the part of a wait in a state really was. A wait that stands for more than
/// itself was divided as its parts are.
fn part_of(wait: RawWait, state: WaitState) -> WaitPart {
    let scaled = |ns: u64| {
        let ns = u128::from(ns) * u128::from(wait.away_ns) / u128::from(wait.weight_ns().max(1));
        u64::try_from(ns).unwrap_or(u64::MAX).max(1)
    };
    let (waited_ns, queued_ns) = (scaled(wait.waited_ns), scaled(wait.queued_ns));
    match (wait.waited_ns, wait.queued_ns) {
        _ if wait.is_open => WaitPart::open(wait.away_ns),
        (0, _) => WaitPart::whole(queued_ns),
        (_, 0) => WaitPart::whole(waited_ns),
        _ if state == WaitState::Queue => WaitPart::second(queued_ns, waited_ns),
        _ => WaitPart::first(waited_ns, queued_ns),
    }
}

/// Whether waits in this state are ended by another thread. A timer or a device ends the
/// others by an interrupt, and the thread that the kernel names as the waker is the one that
/// the interrupt found running.
fn has_waker(state: WaitState) -> bool {
    match state {
        WaitState::Lock
        | WaitState::Gil
        | WaitState::Net
        | WaitState::Stopped
        | WaitState::Other => true,
        WaitState::Run
        | WaitState::Queue
        | WaitState::Disk
        | WaitState::Sleep
        | WaitState::Fault => false,
    }
}

impl Course {
    /// A thread has done nothing when it begins.
    fn begin(totals: &ThreadTotals) -> Self {
        Self {
            newest: totals.clone(),
            readings: [Reading {
                time_ns: totals.since_ns,
                ns: [0; WaitState::ALL.len()],
                delays: [0; DELAY_SLOTS],
            }]
            .into(),
            stretches: VecDeque::new(),
        }
    }

    /// Takes the sums of one more second.
    fn go_on(&mut self, totals: &ThreadTotals) {
        self.newest = totals.clone();
        if let Some(before) = self.readings.back() {
            let of = |state: &WaitState| {
                let at = state.number();
                totals.ns[at].saturating_sub(before.ns[at])
            };
            let most = WaitState::ALL.into_iter().max_by_key(of);
            self.stretches.extend(most.map(|state| Stretch {
                start_ns: before.time_ns,
                end_ns: totals.until_ns,
                state,
            }));
        }
        self.readings.push_back(Reading {
            time_ns: totals.until_ns,
            ns: totals.ns,
            delays: totals.delays,
        });
        if self.readings.len() > READINGS_MAX {
            self.readings.pop_front();
            self.stretches.pop_front();
        }
    }

    /// `None` if nothing is known of it in that window.
    fn between(&self, window: Window) -> Option<ThreadStates> {
        let at = |time_ns: u64| {
            let readings = self.readings.iter();
            readings.min_by_key(|reading| reading.time_ns.abs_diff(time_ns))
        };
        let end = at(window.end_ns)?;
        // It ended before the window.
        if self.newest.has_ended && end.time_ns <= window.start_ns {
            return None;
        }
        let start = at(window.start_ns)?;
        let mut ns = [0; WaitState::ALL.len()];
        for (sum, (end, start)) in ns.iter_mut().zip(end.ns.iter().zip(start.ns)) {
            *sum = end.saturating_sub(start);
        }
        let mut delays = Delays::default();
        let counts = end.delays.into_iter().zip(start.delays);
        for (count, (end, start)) in delays.0.iter_mut().zip(counts) {
            // They begin anew at 2^32.
            *count = end.wrapping_sub(start);
        }
        Some(ThreadStates {
            pid: self.newest.pid,
            tid: self.newest.tid,
            comm: self.newest.comm.clone(),
            ns,
            delays,
            state: self.newest.state,
            state_since_ns: self.newest.state_since_ns,
            owner: self.newest.owner,
            was_so_before: self.newest.state_since_ns == self.newest.since_ns,
            has_ended: self.newest.has_ended,
            course: self.stretches.iter().copied().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(since_ns: u64, until_ns: u64, has_ended: bool) -> ThreadTotals {
        let mut ns = [0; WaitState::ALL.len()];
        // It runs a tenth of the time, and sleeps.
        let lived = until_ns - since_ns;
        ns[WaitState::Run.number()] = lived / 10;
        ns[WaitState::Sleep.number()] = lived - lived / 10;
        ThreadTotals {
            pid: 1,
            tid: 7,
            comm: "sleeper".into(),
            since_ns,
            until_ns,
            has_ended,
            state: WaitState::Sleep,
            state_since_ns: until_ns,
            owner: None,
            ns,
            times: [0; WaitState::ALL.len()],
            // Each second one of them.
            delays: [(lived / SECOND) as u32; DELAY_SLOTS],
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn window(start: u64, end: u64) -> Window {
        Window {
            start_ns: start * SECOND,
            end_ns: end * SECOND,
            paused_ns: 0,
        }
    }

    #[test]
    fn a_window_holds_what_was_done_in_it() {
        let mut store = Store::new(profile::Limits::default());
        assert!(Waiting::new(Counted::OnCpu, &mut store).is_none());
        let mut waiting = Waiting::new(Counted::OffCpu, &mut store).unwrap();
        for second in 101..=110 {
            waiting.add_batch(&Batch {
                threads: vec![totals(100 * SECOND, second * SECOND, false)],
                ..Batch::default()
            });
        }
        let done = |waiting: &Waiting, start, end| {
            let waited = waiting.waited(window(start, end));
            let own = waited.threads.first().map(|thread| thread.ns);
            own.map(|ns| {
                [WaitState::Run, WaitState::Sleep].map(|state| ns[state.number()] / 1_000_000)
            })
        };
        assert_eq!(done(&waiting, 100, 110), Some([1000, 9000]));
        let own = &waiting.waited(window(100, 110)).threads[0];
        assert_eq!(own.delays, Delays([10; DELAY_SLOTS]));
        assert_eq!(waiting.waited(window(104, 106)).threads[0].delays.0[3], 2);
        assert_eq!(own.state_at(105 * SECOND), Some(WaitState::Sleep));
        assert_eq!(own.state_at(111 * SECOND), None);
        assert_eq!(done(&waiting, 104, 106), Some([200, 1800]));
        // The window begins before the thread.
        assert_eq!(done(&waiting, 90, 102), Some([200, 1800]));
        // Another thread gets the number, and ends.
        waiting.add_batch(&Batch {
            threads: vec![totals(111 * SECOND, 112 * SECOND, true)],
            ..Batch::default()
        });
        assert_eq!(done(&waiting, 104, 112), Some([100, 900]));
        assert_eq!(done(&waiting, 112, 114), None);
    }

    #[test]
    fn slots_end_where_the_profile_says() {
        for slot in 0..DELAY_SLOTS {
            let mut delays = Delays::default();
            delays.0[slot] = 1;
            let delay = delays.percentile(99).unwrap();
            let end_ns = probe::delay_end_ns(slot);
            assert_eq!(delay.has_no_end, end_ns.is_none());
            assert!(end_ns.is_none_or(|end_ns| end_ns == delay.ns), "{slot}");
        }
    }

    #[test]
    fn a_wait_counts_in_both_metrics_under_what_it_was_for() {
        let mut store = Store::new(profile::Limits::default());
        let mut waiting = Waiting::new(Counted::Wall, &mut store).unwrap();
        store.add_module(ModuleId(1), "program", "/bin/program");
        store.add_process(profile::ProcessId(1), 1, "program");
        let main = Frame {
            module: ModuleId(1),
            address: 4096,
            kind: FrameKind::User,
        };
        let sample = NewSample {
            time_ns: 5 * SECOND,
            cpu: 0,
            process: profile::ProcessId(1),
            tid: 7,
            comm: "program",
            frames: &[main],
            kernel_frames: 0,
            ending: profile::Ending::Root,
            weight: 1,
        };
        let wait = RawWait {
            state: WaitState::Lock,
            waited_ns: 30,
            queued_ns: 10,
            away_ns: 40,
            waker: Some((1, 8)),
            owner: None,
            told_ns: 0,
            is_open: false,
        };
        waiting.add_wait(sample, wait, &mut store);
        waiting.add_tick(sample, 60, &mut store);
        let wanted = store.frames_to_name(100);
        let others = Waiting::name(wanted, &mut store);
        assert_eq!(others.len(), 1, "the program's own");
        let view = store.view();
        let report = |event| {
            let view = view.of_event(event).unwrap();
            let query = profile::Query::default();
            let selected = view.select(&query, &profile::Cancel::new());
            selected.unwrap().report()
        };
        let off = report(waiting.off_cpu);
        assert!(WaitState::ALL.map(WaitState::word) == profile::STATES);
        let waits = |name: &str| {
            let mut rows = off.functions.iter();
            let row = rows.find(|row| *row.name == *name).unwrap();
            let waits = row.waits.unwrap();
            (waits.count, waits.mean_ns(), waits.longest_ns)
        };
        // One wait, whose thread then stood in the queue.
        assert_eq!(waits("program+0x1000"), (1, Some(40), 40));
        assert_eq!(waits("[waiting: lock]"), (1, Some(30), 30));
        assert_eq!(waits("[waiting: queue]"), (1, Some(10), 10));
        let own: BTreeMap<_, _> = { off.functions.iter() }
            .filter(|row| row.self_samples > 0)
            .map(|row| (&*row.name, row.self_samples))
            .collect();
        let expected = [("[waiting: lock]", 30), ("[waiting: queue]", 10)];
        assert_eq!(own, expected.into());
        assert_eq!((off.samples, report(waiting.wall).samples), (40, 100));
        assert_eq!(waiting.event(), waiting.wall);
        let waited = waiting.waited(window(0, 10));
        let held = waited.holders[0];
        assert_eq!((held.waiter, held.holder_thread, held.ns), (7, 8, 30));
        assert_eq!(held.by, HeldBy::Waker);
        // Who had the lock says more than who woke.
        let owned = RawWait {
            owner: Some((1, 9)),
            waited_ns: 50,
            away_ns: 60,
            ..wait
        };
        waiting.add_wait(sample, owned, &mut store);
        let held = waiting.waited(window(0, 10)).holders[0];
        assert_eq!(
            (held.holder, held.holder_thread, held.by),
            (1, 9, HeldBy::Owner)
        );
        assert_eq!(waiting.waited(window(6, 10)).holders, []);
    }

    #[test]
    fn a_wait_that_is_not_over_is_told_once() {
        let mut store = Store::new(profile::Limits::default());
        let mut waiting = Waiting::new(Counted::OffCpu, &mut store).unwrap();
        let at = |second: u64| NewSample {
            time_ns: second * SECOND,
            cpu: 0,
            process: profile::ProcessId(1),
            tid: 7,
            comm: "program",
            frames: &[],
            kernel_frames: 0,
            ending: profile::Ending::Root,
            weight: 1,
        };
        let open = |waited_ns, away_ns| RawWait {
            state: WaitState::Lock,
            waited_ns,
            queued_ns: 0,
            away_ns,
            waker: None,
            owner: Some((1, 9)),
            told_ns: 0,
            is_open: true,
        };
        waiting.add_wait(at(5), open(3 * SECOND, 3 * SECOND), &mut store);
        waiting.add_wait(at(6), open(SECOND, 4 * SECOND), &mut store);
        let held = waiting.waited(window(0, 10)).holders[0];
        assert_eq!((held.ns, held.waits), (4 * SECOND, 0));
        let over = RawWait {
            told_ns: 4 * SECOND,
            is_open: false,
            ..open(5 * SECOND, 5 * SECOND)
        };
        waiting.add_wait(at(7), over, &mut store);
        let held = waiting.waited(window(0, 10)).holders[0];
        assert_eq!((held.ns, held.waits), (5 * SECOND, 1));
        let view = store.view().of_event(waiting.off_cpu).unwrap();
        let selected = view.select(&profile::Query::default(), &profile::Cancel::new());
        let report = selected.unwrap().report();
        assert_eq!(report.samples, 5 * SECOND);
        let waits = report.functions[0].waits.unwrap();
        assert_eq!((waits.count, waits.mean_ns()), (1, Some(5 * SECOND)));
        assert_eq!(waiting.sampled_ns, 5 * SECOND);
    }
}
