//! Work done *aside*: on a thread of its own, because it may block on a target and its caller must
//! not wait.

use crate::alarm::Alarm;
use crate::channel::{Receiver, Sender, channel};
use crate::confine::{self, Duty};
use crate::shares::FairQueue;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum number of waiting work items; further ones are refused.
const WAITING_MAX: usize = 4096;

/// A thread that does work, for one user after the other. When this is dropped, the thread ends
/// after its current work; dropping does not wait for it.
#[derive(Debug)]
pub struct Aside<Work, Answer> {
    shared: Arc<Shared<Work>>,
    answers: Receiver<Answer>,
}

impl<Work, Answer> AsFd for Aside<Work, Answer> {
    /// A descriptor that becomes readable when work was done, whether that has an answer or not.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.done.as_fd()
    }
}

#[derive(Debug)]
struct Shared<Work> {
    queue: Mutex<Queue<Work>>,
    wake: Condvar,
    /// Rings when work is finished.
    done: Alarm,
}

#[derive(Debug)]
struct Queue<Work> {
    waiting: FairQueue<Work>,
    is_closed: bool,
}

impl<Work: Send + 'static, Answer: Send + 'static> Aside<Work, Answer> {
    /// Starts the thread. `what` describes the work for a user: "reading titles".
    pub fn start(
        name: &str,
        what: &'static str,
        mut work: impl FnMut(Work) -> Option<Answer> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                waiting: FairQueue::new(WAITING_MAX),
                is_closed: false,
            }),
            wake: Condvar::new(),
            done: Alarm::new()?,
        });
        let (sender, answers) = channel();
        let theirs = shared.clone();
        let run = move || {
            confine::thread(Duty::Looking);
            theirs.run(&sender, |wanted| {
                faults::catch(what, || work(wanted)).ok()?
            })
        };
        std::thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { shared, answers })
    }

    /// Adds work on behalf of a user; returns false if too much is waiting.
    pub fn ask(&self, user: u32, work: Work) -> bool {
        let is_taken = self.shared.queue().waiting.push(user, work);
        self.shared.wake.notify_one();
        is_taken
    }

    /// Takes the answers that are ready, and resets the descriptor.
    pub fn answers(&self) -> impl Iterator<Item = Answer> {
        self.shared.done.silence();
        self.answers.try_iter()
    }

    /// Takes the next answer that is ready.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

impl<Work, Answer> Drop for Aside<Work, Answer> {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.wake.notify_one();
    }
}

impl<Work> Shared<Work> {
    fn queue(&self) -> MutexGuard<'_, Queue<Work>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<Answer: Send + 'static>(
        &self,
        answers: &Sender<Answer>,
        mut work: impl FnMut(Work) -> Option<Answer>,
    ) {
        while let Some((user, wanted)) = self.next() {
            let begun = Instant::now();
            let answer = work(wanted);
            let now = Instant::now();
            self.queue().waiting.took(user, now - begun, now);
            if answer.is_some_and(|answer| answers.send(answer).is_err()) {
                return;
            }
            self.done.ring();
        }
    }

    /// Waits for work; `None` at the end.
    fn next(&self) -> Option<(u32, Work)> {
        let mut queue = self.queue();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(next) = queue.waiting.pop(|_| true, Instant::now()) {
                return Some(next);
            }
            let waited = self.wake.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::wait_until;

    #[test]
    fn whoever_asks_does_not_wait_and_another_user_comes_between() {
        let (release, held) = channel::<()>();
        let aside = Aside::start("test", "testing", move |work: u32| {
            // Until the test lets it go on.
            _ = held.recv();
            (work != 13).then_some(work)
        });
        let aside = aside.expect("a thread");
        for work in [1, 2, 3, 13] {
            assert!(aside.ask(60_001, work));
        }
        assert!(aside.ask(60_002, 100));
        assert_eq!(aside.answer(), None, "it is held");
        for _ in 0..5 {
            release.send(()).expect("it lives");
        }
        let mut answers = Vec::new();
        wait_until("all answers", || {
            answers.extend(aside.answer());
            answers.len() == 4
        });
        // Work of one user is done in order; the other user need not wait until all of it is done.
        let of_first: Vec<_> = answers.iter().copied().filter(|it| *it < 100).collect();
        assert_eq!(of_first, [1, 2, 3]);
        assert!(
            answers.iter().position(|it| *it == 100) <= Some(1),
            "{answers:?}"
        );
    }

    #[test]
    fn whoever_waits_is_woken_once_for_what_was_done() {
        let aside = Aside::start("test", "testing", |work: u32| (work > 1).then_some(work))
            .expect("a thread");
        let is_readable = || crate::alarm::is_readable(&aside);
        assert!(!is_readable());
        // Without an answer, and with one.
        for (work, answers) in [(1, vec![]), (2, vec![2])] {
            assert!(aside.ask(0, work));
            wait_until("the work", is_readable);
            assert_eq!(aside.answers().collect::<Vec<_>>(), answers);
            assert!(!is_readable());
        }
    }

    #[test]
    fn a_mistake_costs_one_answer() {
        let aside = Aside::start("test", "testing a mistake", |work: u32| {
            assert_ne!(work, 1, "a mistake");
            Some(work)
        })
        .expect("a thread");
        assert!(aside.ask(0, 1) && aside.ask(0, 2));
        let mut answer = None;
        wait_until("the second answer", || {
            answer = answer.or_else(|| aside.answer());
            answer.is_some()
        });
        assert_eq!(answer, Some(2));
    }
}
