//! The signals that end, stop or continue the program. Before it ends or stops, the terminal has to
//! be restored.

use rustix::process::Signal as Number;
use std::io;
use std::task::{Context, Poll, Waker};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives the signals.
pub struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
    go_on: Signal,
}

/// The action that a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caught {
    /// End, because of the signal with this number.
    End(i32),
    Stop,
    Continue,
}

impl Signals {
    /// Starts to receive the signals, whose default actions are replaced by this.
    pub fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            go_on: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.terminate.recv() => Caught::End(SignalKind::terminate().as_raw_value()),
            _ = self.hangup.recv() => Caught::End(SignalKind::hangup().as_raw_value()),
            _ = self.interrupt.recv() => Caught::End(SignalKind::interrupt().as_raw_value()),
            _ = self.stop.recv() => Caught::Stop,
            _ = self.go_on.recv() => Caught::Continue,
        }
    }

    /// Drops signals that arrived while another program had the terminal: ^C was meant for that
    /// program.
    pub fn forget(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for signal in [&mut self.interrupt, &mut self.stop, &mut self.go_on] {
            while matches!(signal.poll_recv(&mut context), Poll::Ready(Some(()))) {}
        }
    }

    /// Waits until the process is continued after a stop.
    pub async fn wait_for_continue(&mut self) {
        self.go_on.recv().await;
    }
}
