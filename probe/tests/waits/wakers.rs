//! What ends a wait: a thread, a timer or another interrupt. Other programs use every
//! CPU meanwhile, so that interrupts find one of them running: none of them may be named.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Condvar;

/// Duration of a wait with a timeout.
const TIMEOUT: Duration = Duration::from_millis(5);

/// Number of waits of each kind.
const TIMEOUTS: u32 = 100;

/// Starts programs that run whenever a CPU has nothing else to do.
fn burners() -> Vec<Process> {
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    let burner = || Process::start_load(Command::new("sh").args(["-c", "while :; do :; done"]));
    (0..cpus).map(|_| burner()).collect()
}

/// Counts the waits of a thread in one of these states, by what ended them.
fn wakers_of(told: &Told, tid: u32, states: &[WaitState]) -> BTreeMap<String, u32> {
    let mut wakers = BTreeMap::new();
    let waits = told.of(tid).map(|(_, wait)| wait);
    for wait in waits.filter(|wait| states.contains(&wait.state) && wait.waited_ns > 0) {
        let waker = format!("{:?}", wait.waker);
        *wakers.entry(waker).or_default() += 1;
    }
    wakers
}

/// Returns the key of this waker in [`wakers_of`].
fn name(waker: Waker) -> String {
    format!("{:?}", Some(waker))
}

/// Asserts that there were `at_least` waits, that the wakers in `right` ended nearly all of them,
/// and that no other thread ended one.
#[track_caller]
fn assert_ended_by(wakers: &BTreeMap<String, u32>, right: &[Waker], at_least: u32) {
    let right: Vec<String> = right.iter().map(|waker| name(*waker)).collect();
    let all: u32 = wakers.values().sum();
    let of_right: u32 = right.iter().filter_map(|waker| wakers.get(waker)).sum();
    assert!(all >= at_least, "{wakers:?}");
    assert!(
        of_right * 100 >= all * 99,
        "{wakers:?} where {right:?} is right"
    );
    let other = wakers
        .keys()
        .find(|waker| waker.contains("Thread") && !right.contains(waker));
    assert_eq!(other, None, "{wakers:?}");
}

#[test]
fn a_timer_ends_waits_with_timeouts_and_not_who_it_interrupts() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let _burners = burners();
    let on_lock = measured("on-lock", || {
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        for _ in 0..TIMEOUTS {
            let guard = lock.lock().unwrap();
            drop(condition.wait_timeout(guard, TIMEOUT).unwrap());
        }
        Duration::ZERO
    });
    let on_poll = measured("on-poll", || {
        let (from, _to) = std::io::pipe().unwrap();
        for _ in 0..TIMEOUTS {
            let mut polled = [rustix::event::PollFd::new(
                &from,
                rustix::event::PollFlags::IN,
            )];
            let timeout = rustix::time::Timespec::try_from(TIMEOUT).unwrap();
            rustix::event::poll(&mut polled, Some(&timeout)).unwrap();
        }
        Duration::ZERO
    });
    // The kernel ends these by timers of another kind, which are as coarse as its tick.
    let on_socket = measured("on-socket", || {
        let (mut from, _to) = UnixStream::pair().unwrap();
        from.set_read_timeout(Some(TIMEOUT)).unwrap();
        for _ in 0..TIMEOUTS {
            from.read(&mut [0]).unwrap_err();
        }
        Duration::ZERO
    });
    for (thread, state) in [
        (on_lock, WaitState::Lock),
        (on_poll, WaitState::Net),
        (on_socket, WaitState::Net),
    ] {
        let (measured, _) = told.end_of(thread);
        let wakers = wakers_of(&told, measured.tid, &[state]);
        println!("{state:?}: {wakers:?}");
        assert_ended_by(&wakers, &[Waker::Timer], TIMEOUTS / 5);
    }
}

#[test]
fn who_sends_to_this_machine_ends_the_wait_of_who_receives() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let _burners = burners();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = measured("receiving", move || {
        let (mut from, _) = listener.accept().unwrap();
        while from.read(&mut [0]).unwrap() > 0 {}
        Duration::ZERO
    });
    let sender = measured("sending", move || {
        let mut to = TcpStream::connect(address).unwrap();
        to.set_nodelay(true).unwrap();
        for _ in 0..TIMEOUTS {
            std::thread::sleep(TIMEOUT);
            to.write_all(&[1]).unwrap();
        }
        Duration::ZERO
    });
    let (receiver, _) = told.end_of(receiver);
    let (sender, _) = told.end_of(sender);
    let wakers = wakers_of(&told, receiver.tid, &[WaitState::Net]);
    println!("{wakers:?}");
    let by_sender = Waker::Thread {
        pid: std::process::id(),
        tid: sender.tid,
    };
    // If there is very much data, the kernel may leave its delivery to a thread of its own.
    assert_ended_by(&wakers, &[by_sender, Waker::Interrupt], TIMEOUTS / 5);
    let by_sender = wakers.get(&name(by_sender));
    assert!(by_sender.copied() >= Some(TIMEOUTS / 6), "{wakers:?}");
}
