//! `record`: writes samples to a file or a pipe, without a screen.
//!
//! A .pft is a whole recording after every second. ^C writes the rest and ends the recording;
//! SIGUSR2 writes the rest and goes on. With `--ring`, and by `agent`, only the last minutes are
//! kept ([`ring`]). Any other format is made at the end, from a .pft that has no name until then.

/// The socket for requests to a flight recorder.
mod control;
/// The destination of samples: a file, or a flight recorder.
mod destination;
/// The formats that are made at the end, from a .pft.
mod later;
/// Messages about probes.
mod probes;
/// The file to which samples are written while they arrive.
mod recording;
/// The flight recorder.
mod ring;

use super::Subject;
use super::headless::HeadlessRun;
use crate::cli::{Config, RecordConfig};
use crate::failure::{Exit, Failure};
use control::Control;
use destination::{Appended, Destination};
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command};
use probes::Said;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `record` or `agent`: writes samples to a file until the time is over, the target ends or a
/// signal arrives.
pub fn run(config: &Config, subject: Subject, record: &RecordConfig) -> Result<Exit, Failure> {
    super::event_loop()?.block_on(recording(config, subject, record))
}

async fn recording(
    config: &Config,
    subject: Subject,
    record: &RecordConfig,
) -> Result<Exit, Failure> {
    let mut file = Destination::open(record)?;
    let mut control = record
        .ring
        .as_ref()
        .and_then(|ring| ring.control.as_deref())
        .map(Control::open)
        .transpose()?;
    let mut write_now = signal(SignalKind::user_defined2())
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    let count = record.duration.map(|all| steps(all, config.show.delay));
    let mut run = HeadlessRun::start(config, subject, count, AwaitNames::Last)?;
    let mut last: Option<Arc<Snapshot>> = None;
    let mut is_left = false;
    let mut said = Said::default();
    loop {
        tokio::select! {
            snapshot = run.next() => {
                let Some(snapshot) = snapshot? else { break };
                let appended = file.append(&snapshot)?;
                said.say_new(&snapshot.probes);
                file.show_progress(&snapshot);
                last = Some(snapshot);
                match appended {
                    Appended::Done => {}
                    Appended::Closed => {
                        is_left = true;
                        break;
                    }
                    Appended::WantsLines => run.send(Command::ReadLines),
                }
                if let Some(hz) = file.take_rate() {
                    run.send(Command::SetRate(hz));
                }
            }
            Some(()) = write_now.recv() => file.write_now(last.as_deref())?,
            request = next_request(&mut control) => file.handle(request, last.as_deref()),
            // The reader of the output has closed it.
            () = file.reader_gone() => {
                is_left = true;
                break;
            }
        }
    }
    let stopped = run.stop()?;
    if let Some(last) = &last {
        file.finish(last)?;
    }
    stopped.exit(file.samples() > 0 || is_left).await
}

/// Waits for a request at the control socket. Waits forever if there is no socket.
async fn next_request(control: &mut Option<Control>) -> control::Request {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}

/// Returns how many reports, one after each `step`, cover the time `all`.
fn steps(all: Duration, step: Duration) -> u64 {
    all.as_millis().div_ceil(step.as_millis().max(1)) as u64
}
