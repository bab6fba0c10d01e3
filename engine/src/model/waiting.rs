//! Waits in the model: two more metrics, and what each thread did in a window.
//!
//! *Off-CPU* counts nanoseconds that threads waited, *wall* waiting and running time. Both are
//! events of the store beside the clock's ticks, so every view and filter works on them. A waiting
//! stack has one more frame on top, which says what the thread waited for:
//!
//! ```text
//! [waiting: lock] ← futex_wait ← … ← worker ← main        30 ms, off-CPU and wall
//! [waiting: queue] ← futex_wait ← … ← worker ← main       10 ms: ready, and no CPU free
//! parse ← worker ← main                                   10 ms, a tick: wall only
//! ```
//!
//! What each thread did is not derived from stacks: the kernel side keeps sums of time by state for
//! every thread. They are read several times a second, and the difference between two readings goes
//! into the store's log of states, together with who waited for whom.

mod hands;

use super::runners::Runners;
use crate::settings::Counted;
use hands::Hands;
use probe::{Batch, RawWait, ThreadTotals, WaitCounters, WaitState, Waker};
use profile::{
    Delays, DoingThen, EventId, Frame, FrameKind, Held, HeldBy, Metric, ModuleId, NameState,
    NewSample, StateStretch, StateThread, Store, WAITING_MODULE, WaitPart, waiting_name,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The module of the frames that say what a thread waited for. No module of a program has this
/// number, as they are numbered from 0.
const MODULE: ModuleId = ModuleId(u32::MAX);

/// A thread that was not seen for this long is gone, even if its end was not reported.
const GONE_NS: u64 = 10_000_000_000;

/// Percentage of the waited time from which on a note says that it is unknown who ended the waits.
const UNKNOWN_PERCENT: f64 = 1.0;

/// Percentage of the waited time from which on a note says that locks passed through several
/// threads.
const HANDED_ON_PERCENT: f64 = 10.0;

/// What was counted of waits.
pub struct Waiting {
    /// When counting began; `None` if it was the beginning of the run.
    since_ns: Option<u64>,
    off_cpu: EventId,
    wall: EventId,
    kept_waiting: EventId,
    /// The kernel code that runs the program which takes the stacks of threads that end waits.
    runners: Runners,
    /// The event of the store that reports count.
    event: EventId,
    /// The last sums of each living thread, by thread number and when it was first seen.
    threads: BTreeMap<(u32, u64), ThreadTotals>,
    /// Counters of what is missing, for the whole run.
    counters: WaitCounters,
    /// Waited time that sampled stacks stand for, in the whole run.
    sampled_ns: u64,
    /// Waited time that the stacks of threads that ended waits stand for.
    kept_ns: u64,
    /// For waits that a thread normally ends: the waited time of all, and of those for which it is
    /// unknown which thread did.
    ended_ns: u64,
    ended_unknown_ns: u64,
    /// The threads through whose hands locks go while others wait for them.
    hands: Hands,
    /// Waited time for locks whose owner at the beginning of the wait is not the first thread that
    /// `hands` found.
    handed_on_ns: u64,
}

impl Waiting {
    /// Sets up the metrics; `None` if waits are not counted.
    pub fn new(counted: &Counted, store: &mut Store) -> Option<Self> {
        if !counted.has_waits() {
            return None;
        }
        Self::begin(counted, None, store)
    }

    /// Sets up the metrics for a run that counts waits only from `since_ns` on. `None` if there is
    /// no room for more metrics.
    pub fn since(since_ns: u64, store: &mut Store) -> Option<Self> {
        Self::begin(&Counted::OffCpu, Some(since_ns), store)
    }

    fn begin(counted: &Counted, since_ns: Option<u64>, store: &mut Store) -> Option<Self> {
        let mut add = |metric| match since_ns {
            Some(since_ns) => store.add_event_since(metric, since_ns),
            None => store.add_event(metric),
        };
        // In the order of `Counted`.
        let off_cpu = add(Metric::off_cpu())?;
        let wall = add(Metric::wall())?;
        let kept_waiting = add(Metric::kept_waiting())?;
        Some(Self {
            since_ns,
            off_cpu,
            wall,
            kept_waiting,
            runners: Runners::of(probe::WAKES_AT),
            event: match counted {
                Counted::Wall => wall,
                Counted::KeptWaiting => kept_waiting,
                _ => off_cpu,
            },
            threads: BTreeMap::new(),
            counters: WaitCounters::default(),
            sampled_ns: 0,
            kept_ns: 0,
            ended_ns: 0,
            ended_unknown_ns: 0,
            hands: Hands::default(),
            handed_on_ns: 0,
        })
    }

    /// The event of the store that reports count.
    pub fn event(&self) -> EventId {
        self.event
    }

    /// The event that charges waits to the threads that ended them.
    pub fn kept_waiting(&self) -> EventId {
        self.kept_waiting
    }

    /// When counting waits began, on the clock of the samples; `None` if it was the beginning of
    /// the run.
    pub fn since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// Adds a tick of the clock as running time to the metric *wall*; a tick stands for `ns`
    /// nanoseconds. A tick from before waits were counted is left out, because *wall* is running
    /// and waiting of the same time.
    pub fn add_tick(&self, sample: NewSample<'_>, ns: u64, store: &mut Store) {
        if self
            .since_ns
            .is_some_and(|since_ns| sample.time_ns < since_ns)
        {
            return;
        }
        let weight = sample.weight.saturating_mul(ns);
        store.add_sample_of(self.wall, NewSample { weight, ..sample });
    }

    /// Adds a wait, with a frame on top that says what it was for.
    pub fn add_wait(&mut self, sample: NewSample<'_>, wait: RawWait, store: &mut Store) {
        let untold_ns = wait.weight_ns().saturating_sub(wait.told_ns);
        self.sampled_ns = self.sampled_ns.saturating_add(untold_ns);
        for (state, ns) in wait.parts() {
            let frames = below_state(state, sample.frames, store);
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
        // The owner of the lock caused the wait. The thread that released the lock is the same one,
        // or another that owned it later. Which thread ends the wait is known only when it is over.
        let owner = wait.owner.map(|thread| {
            (
                HeldBy::Owner,
                thread,
                wait.waited_ns.saturating_sub(wait.told_ns),
            )
        });
        let waker = self.waker_of(wait);
        let first = self.hands.take_first(sample.tid);
        if let (Some((_, owner)), Some(Waker::Thread { tid, .. })) = (wait.owner, waker)
            && owner != first.unwrap_or(tid)
        {
            self.handed_on_ns = self.handed_on_ns.saturating_add(wait.waited_ns);
        }
        let waker = waker.map(|waker| {
            let (by, thread) = match waker {
                Waker::Thread { pid, tid } => (HeldBy::Waker, (pid, tid)),
                Waker::Timer => (HeldBy::Timer, (0, 0)),
                Waker::Interrupt => (HeldBy::Interrupt, (0, 0)),
            };
            (by, thread, wait.waited_ns)
        });
        if let Some((by, (holder, holder_thread), ns)) = owner.or(waker) {
            let held = Held {
                waiter: sample.tid,
                holder,
                holder_thread,
                by,
                state: wait.state.number(),
                ns,
                waits: u64::from(!wait.is_open),
            };
            store
                .states_mut()
                .add_held(sample.time_ns / 1_000_000_000, held);
        }
    }

    /// Returns which thread ended a wait, if the wait is over and of a kind that threads end.
    /// Counts the waits for which that is unknown.
    fn waker_of(&mut self, wait: RawWait) -> Option<Waker> {
        if wait.is_open || !has_waker(wait.state) {
            return None;
        }
        self.ended_ns = self.ended_ns.saturating_add(wait.waited_ns);
        if wait.waker.is_none() {
            self.ended_unknown_ns = self.ended_unknown_ns.saturating_add(wait.waited_ns);
        }
        wait.waker
    }

    /// Adds a wait to the thread that ended it, whose stack the sample has. A wait for a lock is
    /// divided among all threads through whose hands the lock went meanwhile.
    pub fn add_wake(&mut self, sample: NewSample<'_>, wait: RawWait, store: &mut Store) {
        self.kept_ns = self.kept_ns.saturating_add(wait.waited_ns);
        let sample = self.runners.without(sample);
        let (WaitState::Lock | WaitState::Gil, Some(Waker::Thread { tid: waiter, .. })) =
            (wait.state, wait.waker)
        else {
            let part = part_of(wait, wait.state);
            return self.add_kept(sample, wait.state, wait.waited_ns, part, store);
        };
        // A short wait stands for more than itself, and so does each part of it.
        let scaled = |ns: u64| {
            let ns = u128::from(ns) * u128::from(wait.waited_ns) / u128::from(wait.away_ns.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        for part in self.hands.divide(waiter, wait.away_ns, &sample) {
            let whole = WaitPart::whole(part.ns.max(1));
            self.add_kept(
                part.sample(sample),
                wait.state,
                scaled(part.ns),
                whole,
                store,
            );
        }
    }

    /// Counts that a thread let others wait. Where memory is short, the store may have forgotten
    /// modules of a stack that was taken some time ago: that counts as none.
    fn add_kept(
        &self,
        sample: NewSample<'_>,
        state: WaitState,
        ns: u64,
        part: WaitPart,
        store: &mut Store,
    ) {
        let is_known = |frame: &Frame| store.has_module(frame.module);
        let sample = if sample.frames.iter().all(is_known) {
            sample
        } else {
            NewSample {
                frames: &[],
                kernel_frames: 0,
                ..sample
            }
        };
        let frames = below_state(state, sample.frames, store);
        let sample = NewSample {
            frames: &frames,
            kernel_frames: sample.kernel_frames + 1,
            weight: ns,
            ..sample
        };
        store.add_wait_of(self.kept_waiting, sample, part);
    }

    /// Names those of `frames` that say what a thread waited for, and returns the others.
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

    /// Adds what threads did since the last batch.
    pub fn add_batch(&mut self, batch: &Batch, store: &mut Store) {
        self.counters = batch.waits;
        for totals in &batch.threads {
            let key = (totals.tid, totals.since_ns);
            let before = self.threads.remove(&key);
            if let Some(stretch) = stretch_of(totals, before.as_ref()) {
                store.states_mut().add(stretch);
            }
            if !totals.has_ended {
                self.threads.insert(key, totals.clone());
            }
        }
        if !batch.threads.is_empty() {
            let oldest_ns = batch.complete_until_ns.saturating_sub(GONE_NS);
            self.threads
                .retain(|_, totals| totals.until_ns >= oldest_ns);
        }
    }

    /// Notes about what is missing, and why.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let counters = &self.counters;
        // Waits that no reading caught are samples without a stack.
        let all_ns = self.sampled_ns.saturating_add(counters.without_stack_ns());
        let share = |ns: u64| 100.0 * ns as f64 / all_ns.max(1) as f64;
        let lost = |(waits, ns): (u64, u64), why: &str| {
            let share = share(ns);
            (waits > 0)
                .then(|| format!("of this run {waits} waits, {share:.1}% of the time waited, have no stack: {why}"))
        };
        let open = counters.open_without_stack > 0;
        let open = open.then(|| {
            let waits = counters.open_without_stack;
            format!("of this run {waits} waits that were not over have no stack: their processes' memory could not be read, or there are too many")
        });
        let (wakes, wakes_ns) = counters.wakes_lost;
        let kept_ns = self.kept_ns.saturating_add(wakes_ns);
        let wakes = (wakes > 0).then(|| {
            let share = 100.0 * wakes_ns as f64 / kept_ns.max(1) as f64;
            format!("of this run {wakes} waits, {share:.1}% of kept-waiting, have no stack of who ended them: too many in their second, or the ring buffer was full")
        });
        let unknown = 100.0 * self.ended_unknown_ns as f64 / self.ended_ns.max(1) as f64;
        let unknown = (unknown >= UNKNOWN_PERCENT && !counters.lacks_wakers).then(|| {
            format!("of the waits of this run that are over, {unknown:.1}% of the time, it is not known who ended them: the kernel does not tell who acted from who was interrupted")
        });
        let handed_on = 100.0 * self.handed_on_ns as f64 / self.ended_ns.max(1) as f64;
        let handed_on = (handed_on >= HANDED_ON_PERCENT).then(|| {
            format!("in kept-waiting, {handed_on:.0}% of the time of this run counts in part for another thread than had the lock when the wait began, which Threads names: it is not known through whose hands the lock went")
        });
        let (switches, is_lost) = (counters.switches_lost, counters.switches_lost > 0);
        let switches = is_lost.then(|| {
            format!("{switches} switches of this run found the ring full: until the next one of each thread it counts as doing what it did before")
        });
        let no_room = counters.no_room > 0;
        let no_room = no_room.then(|| {
            format!(
                "{} threads of this run are not followed: there is no room for more",
                counters.no_room
            )
        });
        let ends = counters.ends_lost > 0;
        let ends = ends.then(|| {
            format!(
                "the last sums of {} threads of this run were lost",
                counters.ends_lost
            )
        });
        [
            lost(counters.lost, "the ring buffer was full"),
            lost(counters.over_rate, "there were too many in a second"),
            lost(
                counters.missed,
                "the thread was gone before it could be taken",
            ),
            lost(
                counters.unmet,
                "no look met them, or their memory could not be read",
            ),
            open,
            switches,
            wakes,
            unknown,
            handed_on,
            no_room,
            ends,
        ]
        .into_iter()
        .flatten()
    }
}

/// Returns how long the part of a wait in a state really was. A wait that stands for more than
/// itself is divided in the same proportion as its parts.
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

/// Returns a stack with a frame on top that says what is waited for.
fn below_state(state: WaitState, frames: &[Frame], store: &mut Store) -> Vec<Frame> {
    // The store drops the module with its last frame.
    if !store.has_module(MODULE) {
        store.add_module(MODULE, WAITING_MODULE, WAITING_MODULE);
    }
    let state = Frame {
        module: MODULE,
        address: state.number() as u64,
        kind: FrameKind::Kernel,
    };
    std::iter::once(state)
        .chain(frames.iter().copied())
        .collect()
}

/// Whether waits in this state are normally ended by another thread. The others are ended by a
/// timer or a device, and the kernel side does not record which.
fn has_waker(state: WaitState) -> bool {
    match state {
        WaitState::Lock
        | WaitState::Gil
        | WaitState::Net
        | WaitState::Stopped
        | WaitState::Other => true,
        WaitState::Run
        | WaitState::Queue
        | WaitState::Quota
        | WaitState::Disk
        | WaitState::Sleep
        | WaitState::Fault => false,
    }
}

/// Returns what a thread did since the last reading, or in its whole life if there was none. `None`
/// if it did nothing.
fn stretch_of(totals: &ThreadTotals, before: Option<&ThreadTotals>) -> Option<StateStretch> {
    let start_ns = before.map_or(totals.since_ns, |before| before.until_ns);
    let mut ns = totals.ns;
    let mut delays = Delays(totals.delays);
    if let Some(before) = before {
        for (sum, before) in ns.iter_mut().zip(before.ns) {
            *sum = sum.saturating_sub(before);
        }
        for (count, before) in delays.0.iter_mut().zip(before.delays) {
            // The counters wrap around at 2^32.
            *count = count.wrapping_sub(before);
        }
    }
    let thread = Arc::new(StateThread {
        pid: totals.pid,
        tid: totals.tid,
        comm: Arc::clone(&totals.comm),
        since_ns: totals.since_ns,
    });
    let then = (!totals.has_ended).then_some(DoingThen {
        state: totals.state.number(),
        since_ns: totals.state_since_ns,
        owner: totals.owner,
    });
    let span = (start_ns, totals.until_ns);
    let is_nothing = totals.until_ns <= start_ns && !totals.has_ended;
    (!is_nothing).then(|| StateStretch::new(&thread, span, &ns, &delays, then))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Waited;
    use probe::DELAY_SLOTS;
    use profile::Window;

    fn totals(since_ns: u64, until_ns: u64, has_ended: bool) -> ThreadTotals {
        let mut ns = [0; WaitState::ALL.len()];
        // The thread runs a tenth of the time, and sleeps otherwise.
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
            // One wait in each second.
            delays: [(lived / SECOND) as u32; DELAY_SLOTS],
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn waited(store: &Store, start: u64, end: u64) -> Waited {
        let window = Window {
            start_ns: start * SECOND,
            end_ns: end * SECOND,
            paused_ns: 0,
        };
        Waited::of(&store.view(), window)
    }

    #[test]
    fn a_window_holds_what_was_done_in_it() {
        let mut store = Store::new(profile::Limits::default());
        assert!(Waiting::new(&Counted::OnCpu, &mut store).is_none());
        let mut waiting = Waiting::new(&Counted::OffCpu, &mut store).unwrap();
        for second in 101..=110 {
            let batch = Batch {
                threads: vec![totals(100 * SECOND, second * SECOND, false)],
                ..Batch::default()
            };
            waiting.add_batch(&batch, &mut store);
        }
        let done = |store: &Store, start, end| {
            let waited = waited(store, start, end);
            let own = waited.thread(7).map(|thread| thread.ns);
            own.map(|ns| {
                [WaitState::Run, WaitState::Sleep].map(|state| ns[state.number()] / 1_000_000)
            })
        };
        assert_eq!(done(&store, 100, 110), Some([1000, 9000]));
        let own = &waited(&store, 100, 110).threads[0];
        assert_eq!(own.delays, Delays([10; DELAY_SLOTS]));
        assert_eq!(waited(&store, 104, 106).threads[0].delays.0[3], 2);
        assert_eq!(own.state_at(105 * SECOND), Some(WaitState::Sleep));
        assert_eq!(own.state_at(111 * SECOND), None);
        assert_eq!(done(&store, 104, 106), Some([200, 1800]));
        // The window begins before the thread.
        assert_eq!(done(&store, 90, 102), Some([200, 1800]));
        // Another thread gets the number, and ends.
        let batch = Batch {
            threads: vec![totals(111 * SECOND, 112 * SECOND, true)],
            ..Batch::default()
        };
        waiting.add_batch(&batch, &mut store);
        assert_eq!(done(&store, 104, 112), Some([100, 900]));
        assert_eq!(done(&store, 112, 114), None);
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
        let mut waiting = Waiting::new(&Counted::Wall, &mut store).unwrap();
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
            waker: Some(Waker::Thread { pid: 1, tid: 8 }),
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
        // One wait, after which its thread was in the queue for a CPU.
        assert_eq!(waits("program+0x1000"), (1, Some(40), 40));
        assert_eq!(waits("[waiting: lock]"), (1, Some(30), 30));
        assert_eq!(waits("[waiting: queue]"), (1, Some(10), 10));
        let own: BTreeMap<_, _> = off
            .functions
            .iter()
            .filter(|row| row.self_samples > 0)
            .map(|row| (&*row.name, row.self_samples))
            .collect();
        let expected = [("[waiting: lock]", 30), ("[waiting: queue]", 10)];
        assert_eq!(own, expected.into());
        assert_eq!((off.samples, report(waiting.wall).samples), (40, 100));
        assert_eq!(waiting.event(), waiting.wall);
        let held = waited(&store, 0, 10).holders[0];
        assert_eq!((held.waiter, held.holder_thread, held.ns), (7, 8, 30));
        assert_eq!(held.by, HeldBy::Waker);
        let by_timer = RawWait {
            waker: Some(Waker::Timer),
            waited_ns: 90,
            ..wait
        };
        waiting.add_wait(sample, by_timer, &mut store);
        let held = waited(&store, 0, 10).holders[0];
        assert_eq!(
            (held.waiter, held.holder_thread, held.by),
            (7, 0, HeldBy::Timer)
        );
        assert!(waiting.notes().next().is_none());
        let by_nobody_known = RawWait {
            waker: None,
            ..by_timer
        };
        waiting.add_wait(sample, by_nobody_known, &mut store);
        let note = waiting.notes().next().unwrap();
        assert!(note.contains("it is not known who ended them"), "{note}");
        assert_eq!(waited(&store, 0, 10).holders.len(), 2);
        // The owner of the lock is more informative than the waking thread.
        let owned = RawWait {
            owner: Some((1, 9)),
            waited_ns: 500,
            away_ns: 600,
            ..wait
        };
        waiting.add_wait(sample, owned, &mut store);
        let held = waited(&store, 0, 10).holders[0];
        assert_eq!(
            (held.holder, held.holder_thread, held.by),
            (1, 9, HeldBy::Owner)
        );
        assert_eq!(waited(&store, 6, 10).holders, []);
        let note = waiting.notes().last().unwrap();
        assert!(note.starts_with("in kept-waiting,"), "{note}");
    }

    #[test]
    fn a_wait_counts_for_all_through_whose_hands_the_lock_went() {
        let mut store = Store::new(profile::Limits::default());
        let mut waiting = Waiting::new(&Counted::OffCpu, &mut store).unwrap();
        store.add_module(ModuleId(1), "program", "/bin/program");
        store.add_process(profile::ProcessId(1), 1, "program");
        let mut woken = |tid: u32, by: u32, since: u64, until: u64, address: u64| {
            let frames = [Frame {
                module: ModuleId(1),
                address,
                kind: FrameKind::User,
            }];
            let sample = NewSample {
                time_ns: until,
                cpu: 0,
                process: profile::ProcessId(1),
                tid: by,
                comm: "program",
                frames: &frames,
                kernel_frames: 0,
                ending: profile::Ending::Root,
                weight: 1,
            };
            let wait = RawWait {
                state: WaitState::Lock,
                waited_ns: until - since,
                queued_ns: 0,
                away_ns: until - since,
                waker: Some(Waker::Thread { pid: 1, tid }),
                owner: None,
                told_ns: 0,
                is_open: false,
            };
            waiting.add_wake(sample, wait, &mut store);
            let owned = RawWait {
                waker: Some(Waker::Thread { pid: 1, tid: by }),
                owner: Some((1, 1)),
                ..wait
            };
            waiting.add_wait(NewSample { tid, ..sample }, owned, &mut store);
        };
        // Thread 1 keeps the lock for long, at 4096; 2 has it only for a moment, at 8192.
        woken(2, 1, 5 * SECOND, 6 * SECOND, 4096);
        woken(3, 2, 5 * SECOND, 6 * SECOND + 1000, 8192);
        let view = store.view().of_event(waiting.kept_waiting()).unwrap();
        let selected = view.select(&profile::Query::default(), &profile::Cancel::new());
        let report = selected.unwrap().report();
        let total = |name: &str| {
            let mut rows = report.functions.iter();
            let row = rows.find(|row| *row.name == *name).unwrap();
            (row.total_samples, row.waits.unwrap().count)
        };
        assert_eq!(total("program+0x1000"), (2 * SECOND, 2));
        assert_eq!(total("program+0x2000"), (1000, 1));
        // Nothing counts for another thread than had the lock.
        assert_eq!(waiting.handed_on_ns, 0);
    }

    #[test]
    fn wall_is_running_and_waiting_of_the_same_time() {
        let mut store = Store::new(profile::Limits::default());
        store.begin(SECOND);
        let waiting = Waiting::since(5 * SECOND, &mut store).unwrap();
        for time_ns in [4 * SECOND, 5 * SECOND - 1, 5 * SECOND, 6 * SECOND] {
            let sample = NewSample {
                time_ns,
                cpu: 0,
                process: profile::ProcessId(1),
                tid: 7,
                comm: "program",
                frames: &[],
                kernel_frames: 0,
                ending: profile::Ending::Root,
                weight: 1,
            };
            waiting.add_tick(sample, 10, &mut store);
        }
        let wall = store.view().of_event(waiting.wall).unwrap();
        let selected = wall.select(&profile::Query::default(), &profile::Cancel::new());
        let report = selected.unwrap().report();
        assert_eq!(report.samples, 20, "two ticks are of before");
        assert_eq!(report.window.start_ns, 5 * SECOND);
    }

    #[test]
    fn a_wait_that_is_not_over_is_told_once() {
        let mut store = Store::new(profile::Limits::default());
        let mut waiting = Waiting::new(&Counted::OffCpu, &mut store).unwrap();
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
        let held = waited(&store, 0, 10).holders[0];
        assert_eq!((held.ns, held.waits), (4 * SECOND, 0));
        let over = RawWait {
            told_ns: 4 * SECOND,
            is_open: false,
            ..open(5 * SECOND, 5 * SECOND)
        };
        waiting.add_wait(at(7), over, &mut store);
        let held = waited(&store, 0, 10).holders[0];
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
