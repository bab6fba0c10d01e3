use super::super::look::sample_of;
use super::*;

const MS: u64 = 1_000_000;
/// Waits of this length stand for themselves.
const LONG_NS: u64 = 15 * MS;

fn thread(delay_ns: Option<u64>) -> Thread {
    Thread::running(7, "worker".into(), 0, delay_ns)
}

fn look(begun_ns: u64, ended_ns: u64, state: WaitState) -> Box<Look> {
    Box::new(Look {
        begun_ns,
        seen_ns: ended_ns,
        ended_ns,
        is_same_place: false,
        state,
        owner: None,
        raw: sample_of(7, 8),
        copy: None,
    })
}

fn totals(thread: &Thread) -> ThreadTotals {
    thread.totals(8, false, &Places::new())
}

/// Checks that the times of its states add up to its life.
#[track_caller]
fn check_sum(totals: &ThreadTotals) {
    let lived = totals.until_ns - totals.since_ns;
    assert_eq!(totals.ns.iter().sum::<u64>(), lived, "{totals:?}");
}

#[test]
fn a_wait_that_is_met_stands_for_itself() {
    let mut thread = thread(None);
    thread.leave(10 * MS, false);
    assert!(
        thread
            .offer(look(12 * MS, 13 * MS, WaitState::Lock))
            .is_none()
    );
    assert!(thread.join(40 * MS, 3, LONG_NS, &Places::new()).is_none());
    thread.settle(50 * MS, None, &Places::new());
    let told = totals(&thread);
    check_sum(&told);
    assert_eq!(told.ns_in(WaitState::Run), 20 * MS);
    assert_eq!(told.ns_in(WaitState::Lock), 30 * MS);
    assert_eq!(told.times[WaitState::Lock.number()], 1);
    let [ended] = &thread.take_ended(50 * MS, 10 * MS, false)[..] else {
        panic!("one");
    };
    assert_eq!(
        (ended.ns, ended.away_ns, ended.waits),
        (30 * MS, 30 * MS, 1)
    );
    assert_eq!((ended.time_ns, ended.cpu), (40 * MS, 3));
}

#[test]
fn a_short_wait_that_is_met_stands_for_those_before_it() {
    let mut thread = thread(None);
    let nap = |thread: &mut Thread, begins: u64, is_met: bool| {
        thread.leave(begins, false);
        if is_met {
            thread.offer(look(begins, begins + 1, WaitState::Sleep));
        }
        thread.join(begins + MS, 0, LONG_NS, &Places::new());
    };
    for begins in [2, 4, 6] {
        nap(&mut thread, begins * MS, false);
    }
    nap(&mut thread, 8 * MS, true);
    nap(&mut thread, 10 * MS, true);
    thread.settle(20 * MS, None, &Places::new());
    check_sum(&totals(&thread));
    assert_eq!(totals(&thread).ns_in(WaitState::Sleep), 5 * MS);
    let ended = thread.take_ended(20 * MS, 10 * MS, false);
    let told: Vec<_> = ended.iter().map(|it| (it.ns, it.waits)).collect();
    assert_eq!(told, [(3 * MS, 3), (MS, 1)]);
    // The rest is returned when it ends.
    let rest = thread.take_ended(20 * MS, 10 * MS, true);
    let rest: u64 = rest.iter().map(|ended| ended.ns).sum();
    assert_eq!(rest, MS);
}

#[test]
fn short_waits_count_within_half_a_second() {
    let mut thread = thread(None);
    let mut told = 0;
    let period_ns = 100 * MS;
    // Looks are so far apart that one wait in fifty is met: the waits before must not pile up.
    for nap in 0..400u64 {
        let begins = 5 * MS * nap + MS;
        thread.leave(begins, false);
        if nap == 10 {
            thread.offer(look(begins, begins + 1, WaitState::Sleep));
        }
        thread.join(begins + MS, 0, 150 * MS, &Places::new());
        let now_ns = 5 * MS * (nap + 1);
        thread.settle(now_ns, None, &Places::new());
        let ended = thread.take_ended(now_ns, period_ns, false);
        told += ended.iter().map(|ended| ended.ns).sum::<u64>();
        let waited_ns = (nap + 1) * MS;
        let late_ns = waited_ns - told;
        // A fifth of half a second.
        assert!(nap < 110 || late_ns <= 100 * MS, "{nap}: {late_ns}");
    }
}

#[test]
fn a_look_counts_for_the_wait_that_it_was_in_and_for_no_other() {
    let mut thread = thread(None);
    // It began before the wait, or was not over before its end.
    for (begun, ended) in [(9, 12), (12, 21)] {
        let mut thread = self::thread(None);
        thread.leave(10 * MS, false);
        thread.offer(look(begun * MS, ended * MS, WaitState::Lock));
        assert!(thread.join(20 * MS, 0, LONG_NS, &Places::new()).is_none());
        thread.settle(20 * MS, None, &Places::new());
        assert_eq!(totals(&thread).ns_in(WaitState::Other), 10 * MS);
        assert!(thread.take_ended(20 * MS, 10 * MS, false).is_empty());
    }
    // The look belongs to the next wait, whose beginning is not settled yet.
    thread.leave(10 * MS, false);
    assert!(
        thread
            .offer(look(25 * MS, 26 * MS, WaitState::Net))
            .is_none()
    );
    let later = thread
        .join(20 * MS, 0, LONG_NS, &Places::new())
        .expect("a look");
    let later = thread.offer(later).expect("it runs");
    thread.leave(24 * MS, false);
    assert!(thread.offer(later).is_none());
    assert_eq!(totals(&thread).state, WaitState::Net);
    assert_eq!(thread.open().map(|(since_ns, _)| since_ns), Some(24 * MS));
}

#[test]
fn the_queue_behind_waits_is_what_the_kernel_counts() {
    let mut thread = thread(Some(100 * MS));
    thread.leave(10 * MS, true);
    thread.join(13 * MS, 0, LONG_NS, &Places::new());
    for begins in [20, 40] {
        thread.leave(begins * MS, false);
        thread.offer(look(begins * MS, begins * MS + 1, WaitState::Lock));
        thread.join((begins + 18) * MS, 0, LONG_NS, &Places::new());
    }
    // 3 when it was preempted, and 4 when it was woken, twice together.
    thread.settle(60 * MS, Some(107 * MS), &Places::new());
    let told = totals(&thread);
    check_sum(&told);
    assert_eq!(told.ns_in(WaitState::Queue), 7 * MS);
    assert_eq!(told.ns_in(WaitState::Lock), 32 * MS);
    assert_eq!(told.times[WaitState::Queue.number()], 3);
    assert_eq!(told.delays.iter().sum::<u32>(), 3);
    let ended = thread.take_ended(60 * MS, 10 * MS, false);
    let queued: Vec<u64> = ended.iter().map(|ended| ended.queued_ns).collect();
    assert_eq!(queued, [2 * MS, 2 * MS]);
    // What was counted early does not count again.
    thread.leave(70 * MS, false);
    thread.join(72 * MS, 0, LONG_NS, &Places::new());
    thread.settle(80 * MS, Some(107 * MS), &Places::new());
    assert_eq!(totals(&thread).ns_in(WaitState::Queue), 7 * MS);
    check_sum(&totals(&thread));
}

#[test]
fn a_record_that_is_lost_breaks_no_sum() {
    let mut thread = thread(None);
    thread.leave(10 * MS, false);
    // It has run in between.
    thread.leave(30 * MS, false);
    thread.join(40 * MS, 0, LONG_NS, &Places::new());
    thread.join(50 * MS, 0, LONG_NS, &Places::new());
    thread.settle(60 * MS, None, &Places::new());
    check_sum(&totals(&thread));
    assert_eq!(totals(&thread).ns_in(WaitState::Run), 30 * MS);
}

#[test]
fn sums_that_were_told_stay() {
    let mut thread = thread(None);
    thread.leave(10 * MS, false);
    // It has just begun: a look may find what it waits for.
    thread.settle(20 * MS, None, &Places::new());
    assert_eq!(totals(&thread).until_ns, 10 * MS);
    check_sum(&totals(&thread));
    thread.settle(120 * MS, None, &Places::new());
    let before = totals(&thread);
    check_sum(&before);
    assert_eq!(before.until_ns, 120 * MS);
    thread.offer(look(121 * MS, 122 * MS, WaitState::Lock));
    thread.join(140 * MS, 0, LONG_NS, &Places::new());
    thread.settle(140 * MS, None, &Places::new());
    let after = totals(&thread);
    check_sum(&after);
    for state in WaitState::ALL {
        assert!(after.ns_in(state) >= before.ns_in(state), "{state:?}");
    }
    assert_eq!(after.ns_in(WaitState::Lock), 20 * MS);
}

#[test]
fn where_it_left_its_cpu_tells_what_it_waits_for() {
    let mut thread = thread(None);
    thread.leaves_from(0x1000);
    thread.leave(10 * MS, false);
    thread.join(11 * MS, 0, LONG_NS, &Places::new());
    let places = Places::from([((7, 0x1000), WaitState::Disk)]);
    thread.settle(12 * MS, None, &places);
    assert_eq!(totals(&thread).ns_in(WaitState::Disk), MS);
}

#[test]
fn each_end_has_as_much_of_the_queue_but_no_more_than_its_wait() {
    assert_eq!(shares_of(10, &[(100, 1), (100, 4)]), [2, 8]);
    assert_eq!(shares_of(100, &[(3, 1), (200, 1)]), [3, 97]);
    assert_eq!(shares_of(100, &[(30, 1), (40, 1), (500, 0)]), [30, 40, 0]);
    assert_eq!(shares_of(1, &[(30, 2), (40, 3)]).iter().sum::<u64>(), 1);
    assert_eq!(shares_of(7, &[]), []);
}
