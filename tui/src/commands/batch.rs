//! `--batch`: one report after each delay, to standard output or a file; no
//! screen.

use super::run_command::{CommandWatch, Deadline, Signals, exit};
use super::{Subject, sampling};
use crate::batch::BatchReport;
use crate::choices::{Format, Sort};
use crate::cli::{BatchConfig, Config};
use crate::failure::{Exit, Failure};
use crate::lists::table::Item as _;
use crate::output::Output;
use crate::stderr;
use crate::target::nobody;
use crate::trace::StartTrace;
use crate::views::functions::FunctionColumn;
use crate::widgets::ascii;
use engine::ending;
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command, Consent, Schedule};
use profile::FunctionRow;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::unbounded_channel;

/// Runs `--batch`: samples, and writes a report after each delay, until the number of
/// reports is reached, the target ends or a signal comes.
pub fn run(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?;
    runtime.block_on(report(config, subject, batch))
}

/// Takes snapshots from the engine and writes a report of each, until the engine has made
/// the last one, or nobody reads the output any more.
async fn report(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    // Opened before anything is sampled, so that a file that cannot be written is reported
    // at once and not after the first delay.
    let mut output = Output::open(batch.file.as_deref(), batch.overwrite)?;
    let reader = output.reader()?;
    let mut signals = Signals::listen()?;
    let deadline = Deadline::start()?;
    let (publish, mut reports) = unbounded_channel();
    let schedule = Schedule::Reports {
        delay: config.show.delay,
        count: batch.reports_max.map(u64::from),
        names: AwaitNames::Each,
    };
    let publish = Box::new(move |snapshot| publish.send(snapshot).is_ok());
    let mut sampling =
        sampling::start(config, subject, schedule, Consent::Given, publish)?.give_up_rights();
    let mut command = CommandWatch::new(sampling.started.take());
    let mut trace = StartTrace::new();
    let mut samples = 0;
    let mut is_left = false;
    loop {
        tokio::select! {
            snapshot = reports.recv() => {
                // The engine has ended: the number of reports is reached, or the target is
                // gone.
                let Some(snapshot) = snapshot else { break };
                trace.look(&snapshot);
                samples += snapshot.report.samples;
                let text = faults::catch("writing a report", || {
                    render(&snapshot, config, batch, &output)
                });
                // A caught panic is reported when the program ends; the next report is
                // tried again.
                if !output.write(text.unwrap_or_default().as_bytes())? {
                    is_left = true;
                    break;
                }
            }
            ended = command.ended() => {
                let words = match ended? {
                    Some(status) => ending::words(&sampling.scope, status),
                    None => break,
                };
                let at_ns = probe::now_ns();
                // An engine that is gone has nothing left to report.
                let _ = sampling.commands.send(Command::TargetEnded { words, at_ns });
            }
            // Whoever reads our output has closed it.
            () = reader.gone() => {
                is_left = true;
                break;
            }
            caught = signals.any() => {
                command.pass_on(caught);
                // The engine makes a last report of what came so far.
                let _ = sampling.commands.send(Command::Finish);
            }
        }
    }
    reports.close();
    let failure = sampling.engine.finish();
    trace.print();
    if let Some(sentence) = failure {
        return Err(Failure::new(Exit::NotPossible, sentence).more("proftop doctor"));
    }
    drop(deadline);
    command.say_if_running();
    exit(command, signals, samples > 0 || is_left).await
}

/// Returns the report of a snapshot. The first one may have a head that the others have
/// not.
fn render(snapshot: &Snapshot, config: &Config, batch: &BatchConfig, output: &Output) -> String {
    let mut snapshot = in_order(snapshot, config.look.sort);
    let comm = config.target.comm.as_ref();
    if let Some(comm) = comm.filter(|_| snapshot.report.samples == 0) {
        let notes = nobody::said(comm);
        snapshot.to_mut().health.notes.extend(notes);
    }
    let snapshot = &snapshot;
    let report = BatchReport {
        snapshot,
        version: env!("CARGO_PKG_VERSION"),
        time_unix_ms: unix_ms_at(snapshot.report.window.end_ns),
        pids: &config.target.pids,
        has_other_filters: config.target.has_other_filters(),
        top: batch.rows_max,
        width: output.terminal_width(),
        tokens_max: batch.tokens_max,
    };
    for said in report.beside(batch.format) {
        stderr::say(&said);
    }
    let text = report.render(batch.format, output.is_empty());
    // Markdown, CSV and JSON are for programs, which read what is written.
    if config.look.ascii && batch.format == Format::Text {
        text.replace('…', &ascii::plain('…').to_string())
    } else {
        text
    }
}

/// Returns the snapshot with its functions in the order that was asked for. Snapshots come
/// in the order of self samples.
fn in_order(snapshot: &Snapshot, sort: Sort) -> Cow<'_, Snapshot> {
    if sort == Sort::SelfTime {
        return Cow::Borrowed(snapshot);
    }
    let mut snapshot = snapshot.clone();
    let column = FunctionColumn::from(sort);
    let report = Arc::make_mut(&mut snapshot.report);
    report
        .functions
        .sort_by(|a, b| FunctionRow::compare(column, a, b));
    Cow::Owned(snapshot)
}

/// Converts a time of the samples' clock to milliseconds since 1970.
fn unix_ms_at(time_ns: u64) -> u64 {
    let ago = Duration::from_nanos(probe::now_ns().saturating_sub(time_ns));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(ago).as_millis() as u64
}
