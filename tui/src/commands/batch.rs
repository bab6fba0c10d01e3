//! `--batch`: writes one report after each delay to standard output or a file, without a screen.

use super::Subject;
use super::headless::HeadlessRun;
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
use engine::AwaitNames;
use engine::snapshot::Snapshot;
use profile::{FunctionRow, few};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs `--batch`: samples, and writes a report after each delay, until the number of reports is
/// reached, the target ends or a signal arrives.
pub fn run(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    super::event_loop()?.block_on(report(config, subject, batch))
}

/// Takes snapshots from the engine and writes a report of each, until the engine has made the last
/// one, or the reader of the output has closed it.
async fn report(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    let mut output = Output::open(batch.file.as_deref(), batch.overwrite)?;
    let reader = output.reader()?;
    let count = batch.reports_max.map(u64::from);
    let mut run = HeadlessRun::start(config, subject, count, AwaitNames::Each)?;
    let mut trace = StartTrace::new();
    let mut samples = 0;
    let mut is_left = false;
    loop {
        tokio::select! {
            snapshot = run.next() => {
                let Some(snapshot) = snapshot? else { break };
                trace.look(&snapshot);
                samples += snapshot.report.samples;
                let text = faults::catch("writing a report", || {
                    render(&snapshot, config, batch, &output)
                });
                // A caught panic is reported when the program ends. The next report is still tried.
                if !output.write(text.unwrap_or_default().as_bytes())? {
                    is_left = true;
                    break;
                }
            }
            // The reader of the output has closed it.
            () = reader.gone() => {
                is_left = true;
                break;
            }
        }
    }
    let stopped = run.stop();
    trace.print();
    stopped?.exit(samples > 0 || is_left).await
}

/// Returns the report of a snapshot. Some formats have a head before the first report only.
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
    // Programs read Markdown, CSV and JSON: these keep all characters.
    if config.look.ascii && batch.format == Format::Text {
        text.replace('…', &ascii::plain('…').to_string())
    } else {
        text
    }
}

/// Returns the snapshot with its functions in the order of `sort`. The engine sorts them by self
/// samples.
fn in_order(snapshot: &Snapshot, sort: Sort) -> Cow<'_, Snapshot> {
    if sort == Sort::SelfTime {
        return Cow::Borrowed(snapshot);
    }
    let mut snapshot = snapshot.clone();
    let column = FunctionColumn::from(sort);
    let report = Arc::make_mut(&mut snapshot.report);
    few::sort_by(&mut report.functions, |a, b| {
        FunctionRow::compare(column, a, b)
    });
    Cow::Owned(snapshot)
}

/// Converts a time of the clock of samples to milliseconds since 1970.
fn unix_ms_at(time_ns: u64) -> u64 {
    let ago = Duration::from_nanos(probe::now_ns().saturating_sub(time_ns));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(ago).as_millis() as u64
}
