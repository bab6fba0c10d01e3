use crate::terminal;
use crossterm::event::{Event as Input, EventStream};
use futures_util::Stream;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Keys, mouse events and sizes from the terminal. Dropping it leaves them to other programs.
///
/// The loop polls everything that it waits for whenever one of them is ready. [`EventStream`] reads
/// on a thread of its own, which holds a lock while it waits for the terminal: each poll without
/// need would wait for that lock, which was a quarter of what the main thread cost.
pub struct Keys {
    stream: EventStream,
    ready: Arc<Ready>,
    waker: Waker,
}

/// Whether the stream may have something, and who wants to know.
struct Ready {
    is_set: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(listener) = self.listener().take() {
            listener.wake();
        }
    }
}

impl Ready {
    fn listener(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `poll` if there may be something, and has the caller woken later if there is nothing.
    fn poll<T>(&self, context: &mut Context<'_>, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        // Before the look, so that no wake in between is missed.
        *self.listener() = Some(context.waker().clone());
        if !self.is_set.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let polled = poll();
        if polled.is_ready() {
            // There may be more.
            self.is_set.store(true, Ordering::SeqCst);
        }
        polled
    }
}

impl Keys {
    /// Starts to read from the terminal.
    pub fn new() -> Self {
        let ready = Arc::new(Ready {
            is_set: AtomicBool::new(true),
            listener: Mutex::new(None),
        });
        Self {
            stream: EventStream::new(),
            waker: ready.clone().into(),
            ready,
        }
    }

    /// Waits for the next one; `None` if the terminal is gone.
    pub async fn next(&mut self) -> Option<io::Result<Input>> {
        // A read from a terminal that is gone returns 0 bytes at once, and the stream then reads
        // again and again without ever returning. So it is not polled once the terminal is gone.
        poll_fn(|context| {
            if terminal::is_gone() {
                Poll::Ready(None)
            } else {
                self.poll(context)
            }
        })
        .await
    }

    /// Returns one that is ready already. The outer `None` means that there is none.
    pub async fn waiting(&mut self) -> Option<Option<io::Result<Input>>> {
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(input) => Poll::Ready(Some(input)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Input>>> {
        let Self {
            stream,
            ready,
            waker,
        } = self;
        ready.poll(context, || {
            Pin::new(stream).poll_next(&mut Context::from_waker(waker))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_polled_when_it_was_woken_and_until_nothing_is_left() {
        let ready = Arc::new(Ready {
            is_set: AtomicBool::new(true),
            listener: Mutex::new(None),
        });
        let told = Arc::new(Ready {
            is_set: AtomicBool::new(false),
            listener: Mutex::new(None),
        });
        let listener = Waker::from(told.clone());
        let mut context = Context::from_waker(&listener);
        let waker = Waker::from(ready.clone());
        let mut left = vec!["b", "a"];
        let mut polls = 0;
        let mut poll = |left: &mut Vec<&'static str>| {
            ready.poll(&mut context, || {
                polls += 1;
                left.pop().map_or(Poll::Pending, Poll::Ready)
            })
        };
        assert_eq!(poll(&mut left), Poll::Ready("a"));
        assert_eq!(poll(&mut left), Poll::Ready("b"));
        for _ in 0..5 {
            assert_eq!(poll(&mut left), Poll::Pending);
        }
        left.push("c");
        assert_eq!(poll(&mut left), Poll::Pending, "nobody has said so");
        assert!(!told.is_set.load(Ordering::SeqCst));
        waker.wake_by_ref();
        assert!(told.is_set.load(Ordering::SeqCst));
        assert_eq!(poll(&mut left), Poll::Ready("c"));
        assert_eq!(poll(&mut left), Poll::Pending);
        assert_eq!(polls, 5);
    }
}
