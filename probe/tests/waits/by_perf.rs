//! The same without BPF: switches say when a thread waits, and looks at the thread say what for.

use super::*;
use probe::PerfSource;

/// A wait of this length is certainly met if looks are as frequent as they can be: two
/// periods.
const MET_NS: u64 = 20_000_000;

/// Duration of one wait in these tests.
const LONG: Duration = Duration::from_millis(40);

/// Starts a source; `None`, with a message, if rights are missing or waits are not followed.
fn start() -> Option<Told<PerfSource>> {
    if !PerfSource::FOLLOWS_WAITS {
        skip("waits are not followed on this machine");
        return None;
    }
    let config = Config {
        target: only(std::process::id()),
        waits: true,
        ..Config::default()
    };
    let needs = "kernel.perf_event_paranoid forbids it";
    let source = unless_forbidden(PerfSource::start(&config), needs)?;
    let refused = |note: &String| note.contains("cannot be counted");
    assert!(!source.info().notes.iter().any(refused));
    Some(Told::of_source(source))
}

/// Returns whether this run may see frames of the kernel.
fn sees_kernel(told: &Told<PerfSource>) -> bool {
    let notes = told.source.info().notes;
    !notes
        .iter()
        .any(|note| note.contains("time in the kernel is not seen"))
}

/// Checks that long waits of a thread gave whole stacks, and that short ones stand for the rest of
/// its time.
#[track_caller]
fn assert_met(told: &Told<PerfSource>, state: WaitState, totals: &ThreadTotals) {
    let tid = totals.tid;
    let queued = totals.ns_in(WaitState::Queue);
    let (all, sampled) = (totals.ns_in(state), told.sampled(tid, state));
    let slack = all / 33 + queued;
    assert!(
        sampled <= all + slack && sampled + slack >= all,
        "{sampled} of {all}: {totals:?}"
    );
    let long = told.of(tid).filter(|(_, wait)| wait.away_ns >= MET_NS);
    let (mut long_waits, mut whole) = (0, 0);
    for (sample, _) in long {
        long_waits += 1;
        whole += usize::from(sample.ending == Ending::Root);
        let has_stack = !sample.frames.is_empty();
        assert!(!has_stack || !sees_kernel(told) || sample.kernel_frames > 0);
    }
    assert!(
        long_waits > 0 && whole * 10 >= long_waits * 8,
        "{whole} of {long_waits} are whole"
    );
}

#[test]
fn a_sleeper_sleeps() {
    let _alone = alone();
    let Some(mut told) = start() else {
        return;
    };
    let sleeper = measured("sleeping", || {
        let mut waited = Duration::ZERO;
        for turn in 0..WAITS {
            move_to_cpu(turn);
            timed(&mut waited, || std::thread::sleep(LONG));
        }
        waited
    });
    let (measured, totals) = told.end_of(sleeper);
    assert_eq!(&*totals.comm, "sleeping");
    assert_eq!(totals.pid, std::process::id());
    assert_waited(WaitState::Sleep, &measured, &totals);
    assert_met(&told, WaitState::Sleep, &totals);
    assert_eq!(told.counters.switches_lost, 0);
}

#[test]
fn who_waits_for_a_lock_knows_who_has_it() {
    let _alone = alone();
    let Some(mut told) = start() else {
        return;
    };
    // A mutex of glibc, which contains its owner.
    struct Lock(std::cell::UnsafeCell<libc::pthread_mutex_t>);
    // SAFETY: a mutex may be used by several threads.
    unsafe impl Sync for Lock {}
    static LOCK: Lock = Lock(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
    // SAFETY: the mutex lives as long as the program.
    let lock = || assert_eq!(unsafe { libc::pthread_mutex_lock(LOCK.0.get()) }, 0);
    // SAFETY: the caller has locked it.
    let unlock = || assert_eq!(unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) }, 0);
    let (has_it, is_held) = mpsc::channel();
    let holder = measured("holding", move || {
        lock();
        has_it.send(()).unwrap();
        std::thread::sleep(LONG * WAITS / 2);
        unlock();
        Duration::ZERO
    });
    is_held.recv().unwrap();
    let waiter = measured("waiting", move || {
        let mut waited = Duration::ZERO;
        timed(&mut waited, lock);
        unlock();
        waited
    });
    let (measured, totals) = told.end_of(waiter);
    let (holder, _) = told.end_of(holder);
    assert_waited(WaitState::Lock, &measured, &totals);
    assert_met(&told, WaitState::Lock, &totals);
    let long = told
        .of(measured.tid)
        .filter(|(_, wait)| wait.away_ns >= MET_NS);
    let owners: Vec<_> = long.map(|(_, wait)| wait.owner).collect();
    assert_eq!(owners.last(), Some(&Some((std::process::id(), holder.tid))));
}

#[test]
fn who_reads_a_pipe_waits_for_it() {
    let _alone = alone();
    let Some(mut told) = start() else {
        return;
    };
    let (mut from, mut to) = std::io::pipe().unwrap();
    let writer = measured("writing", move || {
        for _ in 0..WAITS {
            std::thread::sleep(LONG);
            to.write_all(&[1]).unwrap();
        }
        Duration::ZERO
    });
    let reader = measured("reading", move || {
        let mut waited = Duration::ZERO;
        timed(&mut waited, || from.read_to_end(&mut Vec::new()).unwrap());
        waited
    });
    let (measured, totals) = told.end_of(reader);
    told.end_of(writer);
    assert_waited(WaitState::Net, &measured, &totals);
    assert_met(&told, WaitState::Net, &totals);
}

#[test]
fn who_is_preempted_is_in_the_queue() {
    let _alone = alone();
    let Some(mut told) = start() else {
        return;
    };
    let mut queued = Duration::ZERO;
    for burner in burn_with_two_too_many() {
        let (measured, totals) = told.end_of(burner);
        let of = |state| Duration::from_nanos(totals.ns_in(state));
        let busy = of(WaitState::Run) + of(WaitState::Queue);
        assert!(busy * 100 >= measured.wall * 97, "{totals:?}");
        queued += of(WaitState::Queue);
    }
    // At any time at least two of them had to wait.
    assert!(queued >= WAIT * WAITS, "{queued:?}");
}

#[test]
fn short_waits_have_their_time_and_number() {
    let _alone = alone();
    let Some(mut told) = start() else {
        return;
    };
    const NAPS: u64 = 4000;
    let sleeper = measured("napping", || {
        let mut waited = Duration::ZERO;
        for _ in 0..NAPS {
            timed(&mut waited, || {
                std::thread::sleep(Duration::from_micros(100));
            });
        }
        waited
    });
    let (measured, totals) = told.end_of(sleeper);
    let stacks = told.of(totals.tid).count() as u64;
    assert!(stacks > 1 && stacks < NAPS, "{stacks} stacks");
    // What the first waits are for is unknown until a look has met one. Much of so short a wait is
    // spent on a CPU, on the way to sleep and back.
    let away = [WaitState::Queue, WaitState::Sleep, WaitState::Other];
    let waited: u64 = away.iter().map(|state| totals.ns_in(*state)).sum();
    let known = Duration::from_nanos(waited + totals.ns_in(WaitState::Run));
    assert!(
        known * 33 >= measured.waited * 32,
        "{:?}: {totals:?}",
        measured.waited
    );
    assert!(
        totals.ns_in(WaitState::Sleep) > totals.ns_in(WaitState::Other),
        "{totals:?}"
    );
    // Every short wait is included in the sample of one that was met.
    let sampled = away.iter().map(|state| told.sampled(totals.tid, *state));
    let sampled: u64 = sampled.sum();
    assert!(
        sampled.abs_diff(waited) <= waited / 33,
        "{sampled} of {waited}"
    );
    let times = |state: WaitState| u64::from(totals.times[state.number()]);
    let counted = times(WaitState::Sleep) + times(WaitState::Other);
    assert!(counted.abs_diff(NAPS) <= NAPS / 20, "{totals:?}");
}

/// One thread begins to wait before the source starts, and one afterwards. The source reports both
/// while they wait, and what it reports of a wait adds up to the wait's length when it is over.
#[test]
fn waits_are_told_before_they_end_and_began_before_we_came() {
    let _alone = alone();
    let (tid_before, go_on, before) = waiting_thread();
    let Some(mut told) = start() else {
        return;
    };
    let (tid_after, go_on_after, after) = waiting_thread();
    let both = [tid_before, tid_after];
    for tid in both {
        wait_until("it has been told three times", || {
            told.take();
            told.of(tid).filter(|(_, wait)| wait.is_open).count() >= 3
        });
        for (sample, wait) in told.of(tid).filter(|(_, wait)| wait.is_open) {
            assert_eq!(wait.state, WaitState::Lock);
            // If a wait began before the source started, not all registers are known.
            assert!(tid == tid_before || !sees_kernel(&told) || sample.ending == Ending::Root);
        }
        let thread = &told.threads[&tid];
        let lived = thread.ns_in(WaitState::Lock) + (probe::now_ns() - thread.until_ns);
        assert!(told.sampled(tid, WaitState::Lock) <= lived);
    }
    drop((go_on, go_on_after));
    before.join().unwrap();
    after.join().unwrap();
    for tid in both {
        let thread = wait_for("the end of the thread", || {
            told.take();
            let thread = told.threads.get(&tid)?;
            let is_over = told.of(tid).any(|(_, wait)| wait.told_ns > 0);
            (thread.has_ended && is_over).then(|| thread.clone())
        });
        let (sum, all) = (
            told.sampled(tid, WaitState::Lock),
            thread.ns_in(WaitState::Lock),
        );
        assert!(sum.abs_diff(all) <= MET_NS, "{sum} of {all}");
    }
}

#[test]
fn waits_are_followed_later_without_bpf_too() {
    let _alone = alone();
    let config = Config {
        target: only(std::process::id()),
        ..Config::default()
    };
    let needs = "kernel.perf_event_paranoid forbids it";
    let Some(source) = unless_forbidden(PerfSource::start(&config), needs) else {
        return;
    };
    let mut told = Told::of_source(source);
    let (tid, go_on, waiter) = waiting_thread();
    told.take();
    assert!(told.threads.is_empty() && told.samples.is_empty());
    let since_ns = told.source.count_waits().unwrap();
    assert_eq!(told.source.count_waits(), Ok(since_ns));
    wait_until("its stack is told while it waits", || {
        told.take();
        told.of(tid).any(|(_, wait)| wait.is_open)
    });
    let thread = told.threads[&tid].clone();
    assert_eq!((thread.state, thread.has_ended), (WaitState::Lock, false));
    drop(go_on);
    waiter.join().unwrap();
}
