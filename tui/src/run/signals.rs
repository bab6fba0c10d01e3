//! The signals that end or stop a program, and the one that continues it: each
//! has to find the terminal as it was.

use rustix::process::Signal as Number;
use std::io;
use std::task::{Context, Poll, Waker};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    go_on: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caught {
    /// proftop is to end, by the signal of that number.
    End(i32),
    Stop,
    Continue,
}

impl Signals {
    pub fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            go_on: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
        })
    }

    pub async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.terminate.recv() => Caught::End(SignalKind::terminate().as_raw_value()),
            _ = self.hangup.recv() => Caught::End(SignalKind::hangup().as_raw_value()),
            _ = self.interrupt.recv() => Caught::End(SignalKind::interrupt().as_raw_value()),
            _ = self.stop.recv() => Caught::Stop,
            _ = self.go_on.recv() => Caught::Continue,
        }
    }

    /// Those that were meant for somebody else who had the terminal: ^C there is
    /// not ^C here.
    pub fn forget(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for signal in [&mut self.interrupt, &mut self.stop, &mut self.go_on] {
            while matches!(signal.poll_recv(&mut context), Poll::Ready(Some(()))) {}
        }
    }

    pub async fn wait_for_continue(&mut self) {
        self.go_on.recv().await;
    }
}
