//! The *deadline* of a run after a signal: neither a program that stops reading our output nor a
//! busy machine may keep the process alive.

use super::Signals;
use probe::confine::{self, Duty};

use crate::failure::{Exit, Failure};
use crate::output;
use faults::Patience;
use rustix::process::Signal as Number;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long after a signal a write may make no progress: after that, nothing reads the output.
const STUCK_WAIT: Duration = Duration::from_millis(700);
/// How long after a signal all else may take that the last report needs. It is long, because the
/// machine may be very busy.
const LAST_WAIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// While this value exists, a signal ends the process in time, whatever the main thread is doing.
/// Drop it when the work is done.
pub struct Deadline {
    is_met: Arc<AtomicBool>,
}

impl Deadline {
    /// Starts the thread that waits for a signal.
    pub fn start() -> Result<Self, Failure> {
        let failed = |error| Failure::failed(format!("cannot listen for signals: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let is_met = Arc::new(AtomicBool::new(false));
        let flag = is_met.clone();
        let mut signals = {
            let _inside = runtime.enter();
            Signals::listen()?
        };
        // The thread waits for a signal for as long as the process lives.
        thread::Builder::new()
            .name("deadline".into())
            .spawn(move || {
                confine::thread(Duty::Waiting);
                let mut patience = Patience::default();
                loop {
                    let done = faults::catch("waiting for a signal", || {
                        let caught = runtime.block_on(signals.any());
                        enforce(caught, &flag);
                    });
                    // Without this thread a signal still ends the run, unless the main thread is
                    // stuck.
                    if !matches!(patience.take(done), Ok(None)) {
                        return;
                    }
                }
            })
            .map_err(failed)?;
        Ok(Deadline { is_met })
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.is_met.store(true, Ordering::Relaxed);
    }
}

/// Ends the process with the status of the signal, unless the work is done in time.
fn enforce(caught: Number, is_met: &AtomicBool) {
    let began = Instant::now();
    let mut piece = output::piece_being_written();
    let mut piece_seen = began;
    while !is_met.load(Ordering::Relaxed) {
        let now_written = output::piece_being_written();
        if now_written != piece {
            (piece, piece_seen) = (now_written, Instant::now());
        }
        let is_stuck = piece.is_some() && piece_seen.elapsed() >= STUCK_WAIT;
        if is_stuck || began.elapsed() >= LAST_WAIT {
            let signal = u8::try_from(caught.as_raw()).unwrap_or(0);
            probe::call::leave_to_exit();
            std::process::exit(Exit::Signal(signal).code().into());
        }
        thread::sleep(LOOK_EVERY);
    }
}
