//! Threads whose waits end in known ways: by a timer, and by another thread that sends to this
//! machine. Meanwhile other threads use the CPUs, so that interrupts find them running.

use super::own_machine;
use probe::{Batch, Event, WaitState, Waker};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The thread that waits for a lock that is never released, until its time is over.
const TIMED: &str = "timed";
/// The thread that waits for data from [`SENDER`].
const RECEIVER: &str = "receiver";
const SENDER: &str = "sender";
const TIMEOUT: Duration = Duration::from_millis(10);
/// Minimum number of waits of each thread that are checked: there are few if everything is
/// emulated.
const WAITS_MIN: u32 = 3;

/// Starts the threads. Returns an error if this machine cannot send to itself.
pub fn start() -> io::Result<()> {
    if own_machine::is_ours() {
        own_machine::connect_to_itself()?;
    }
    let named = |name: &str| thread::Builder::new().name(name.into());
    named(TIMED).spawn(|| {
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        let mut guard = lock.lock().expect("nobody panics with it");
        loop {
            let waited = condition.wait_timeout(guard, TIMEOUT);
            guard = waited.expect("nobody panics with it").0;
        }
    })?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    named(RECEIVER).spawn(move || {
        let (mut from, _) = listener.accept()?;
        while from.read(&mut [0])? > 0 {}
        io::Result::Ok(())
    })?;
    let mut to = TcpStream::connect(address)?;
    to.set_nodelay(true)?;
    named(SENDER).spawn(move || {
        loop {
            thread::sleep(TIMEOUT);
            to.write_all(&[1])?;
        }
        #[expect(unreachable_code, reason = "it tells the type of the error")]
        io::Result::Ok(())
    })?;
    Ok(())
}

/// What ended the waits of both threads, and how often.
#[derive(Default)]
pub struct Wakers {
    sender: Option<u32>,
    timed: BTreeMap<String, u32>,
    receiver: BTreeMap<String, u32>,
}

impl Wakers {
    pub fn add(&mut self, batch: &Batch) {
        let mut senders = batch
            .threads
            .iter()
            .filter(|thread| &*thread.comm == SENDER);
        self.sender = senders.next().map(|thread| thread.tid).or(self.sender);
        let waits = batch
            .samples
            .iter()
            .filter(|sample| sample.event == Event::Wait);
        for sample in waits {
            let (wakers, state) = match &*sample.comm {
                TIMED => (&mut self.timed, WaitState::Lock),
                RECEIVER => (&mut self.receiver, WaitState::Net),
                _ => continue,
            };
            let wait = sample
                .wait
                .filter(|wait| wait.state == state && !wait.is_open);
            if let Some(wait) = wait.filter(|wait| wait.waited_ns > 0) {
                *wakers.entry(format!("{:?}", wait.waker)).or_default() += 1;
            }
        }
    }

    pub fn check(&self) -> Result<(), String> {
        println!(
            "wakers: timed {:?} receiver {:?}",
            self.timed, self.receiver
        );
        let by_sender = self.sender.map(|tid| {
            let pid = std::process::id();
            Waker::Thread { pid, tid }
        });
        let [timer, interrupt] = [Waker::Timer, Waker::Interrupt].map(Some);
        check(&self.timed, &[timer], timer)?;
        check(&self.receiver, &[by_sender, interrupt], by_sender)
    }
}

/// Checks that only `allowed` ended these waits, and `usual` most of them.
fn check(
    wakers: &BTreeMap<String, u32>,
    allowed: &[Option<Waker>],
    usual: Option<Waker>,
) -> Result<(), String> {
    let count = |waker: &Option<Waker>| wakers.get(&format!("{waker:?}")).copied().unwrap_or(0);
    let all: u32 = wakers.values().sum();
    let right: u32 = allowed.iter().map(count).sum();
    if all < WAITS_MIN || right < all || count(&usual) * 10 < all * 9 {
        return Err(format!("{wakers:?} ended waits, where {usual:?} did"));
    }
    Ok(())
}
