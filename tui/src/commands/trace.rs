//! `trace`: counts and times calls of functions, without a screen.
//!
//! | module | holds |
//! |---|---|
//! | `watch` | the probes of a run: placing, limiting and reading them |
//! | `callers` | the callers of functions: sampled stacks, with names |
//! | `recording` | the results as a recording, and the file of `-o` |
//! | `report` | the printed report |

mod callers;
mod recording;
pub mod report;
mod watch;

use super::Subject;
use super::reach::{self, probe_target};
use super::run_command::{CommandWatch, Signals, exit};
use crate::cli::{Config, TraceConfig};
use crate::failure::{Exit, Failure};
use crate::{reader, stderr};
use callers::Callers;
use probe::{BpfSource, Source as _, haste};
use profile::TimeRange;
use recording::Recording;
use report::Manner;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};
use watch::Watch;

/// Default for how long probes stay.
const LIFETIME: Duration = Duration::from_secs(60);

/// Time between two reads of records and checks for signals.
const TURN: Duration = Duration::from_millis(20);

/// How long after the start of a command its libraries are searched at every turn.
const EARLY: Duration = Duration::from_secs(1);

/// Time between two checks whether a probe costs too much.
const JUDGED_EVERY: Duration = Duration::from_millis(250);

/// Time between two writes to a growing file.
const KEPT_EVERY: Duration = Duration::from_secs(1);

/// Runs `trace`: probes functions until the time is over, the target ends or a signal arrives, then
/// prints the results.
pub fn run(config: &Config, subject: Subject, trace: &TraceConfig) -> Result<Exit, Failure> {
    super::event_loop()?.block_on(tracing(config, subject, trace))
}

/// Places the probes, lets the command run, and counts until there is a reason to end. The probes
/// are placed before the command runs, so that its first calls are counted.
async fn tracing(config: &Config, subject: Subject, trace: &TraceConfig) -> Result<Exit, Failure> {
    let mut recording = Recording::open(trace, &subject.target.words)?;
    let mut signals = Signals::listen()?;
    let mut source = start(config, &subject)?;
    let calls = source.take_calls().map_err(cannot)?;
    let mut watch = Watch::new(calls, trace)?;
    let reach = reach::of(config, &subject.target);
    // A command and its libraries are probed before it runs. What it loads or starts itself is
    // probed later.
    watch.place(&reach)?;
    match &config.command {
        None => watch.check_all_found()?,
        Some(command) => watch.say_missing(&command.program.to_string_lossy()),
    }
    let (tell, started) = tokio::sync::oneshot::channel();
    let mut command = CommandWatch::new(subject.held.is_some().then_some(started));
    let (begun, begun_ns) = (Instant::now(), probe::now_ns());
    if let Some(held) = subject.held {
        _ = tell.send(held.release());
    }
    let end = begun + trace.duration.unwrap_or(LIFETIME);
    let (mut callers, mut judged, mut looked) = (Callers::default(), begun, begun);
    let mut kept = begun;
    let mut how = None;
    // What is found is printed at the end: until then no write fails if nothing reads it any more.
    let is_read = || !reader::is_gone(io::stdout().as_fd());
    while Instant::now() < end && how.is_none() && watch.has_probes() && is_read() {
        let batch = source
            .poll(TURN)
            .map_err(|error| Failure::failed(error.to_string()))?;
        callers.take(batch, &mut watch);
        // Calls into a library may begin with the program, so libraries are searched often at that
        // time.
        let looked_every = if begun.elapsed() < EARLY {
            TURN
        } else {
            JUDGED_EVERY
        };
        if looked.elapsed() >= looked_every {
            watch.place_late(&reach)?;
            looked = Instant::now();
        }
        if judged.elapsed() >= JUDGED_EVERY {
            watch.judge(judged.elapsed());
            judged = Instant::now();
            if reach.has_ended() {
                how = Some("the target ended".to_string());
            }
        }
        if recording.is_growing() && kept.elapsed() >= KEPT_EVERY {
            if let Some(begin_ns) = watch.begin_ns() {
                let log = watch.log(|frame, symbolizer| callers.name(frame, symbolizer));
                let view = recording.view(log, begin_ns);
                recording.append(&view)?;
            }
            kept = Instant::now();
        }
        tokio::select! {
            biased;
            caught = signals.any() => {
                haste::begin();
                command.pass_on(caught);
                break;
            }
            ended = command.ended(&subject.target.words) => {
                how = Some(ended?.unwrap_or_default());
            }
            // This yields because the event loop receives signals only while this task waits.
            () = tokio::task::yield_now() => {}
        }
    }
    if let Err(failure) = watch.check_some_found() {
        drop(source);
        // The message is printed before waiting for the command, which may take long.
        stderr::write(&failure);
        exit(command, signals, false).await?;
        return Ok(failure.exit);
    }
    let time = begun.elapsed();
    watch.finish();
    // Records in the ring buffer are from before the end, so they count.
    callers.take(source.poll(Duration::ZERO).unwrap_or_default(), &mut watch);
    drop(source);
    let log = watch.log(|frame, symbolizer| callers.name(frame, symbolizer));
    let begin_ns = watch.begin_ns().unwrap_or(begun_ns);
    let view = recording.view(log, begin_ns);
    let has_hits = view
        .probes()
        .probes()
        .iter()
        .any(|probe| probe.total(TimeRange::ALL).calls > 0);
    super::print(&report::render(
        &view,
        Manner {
            format: trace.format,
            time,
            is_timed: Some(trace.is_timed),
            stacks: Some(trace.stacks),
            command_ns: config.command.is_some().then_some(begun_ns),
        },
    ))?;
    recording.finish(&view)?;
    exit(command, signals, has_hits).await
}

/// Starts to follow the target without sampling it: with a rate of 0 there is no sampling clock,
/// and only calls produce stacks.
fn start(config: &Config, subject: &Subject) -> Result<BpfSource, Failure> {
    let mut target = probe_target(&subject.target);
    if let Some(comm) = &subject.target.comm {
        let compiled = regex::bytes::Regex::new(comm.as_str());
        target.comm = Some(compiled.map_err(|error| Failure::usage(format!("--comm: {error}")))?);
    }
    BpfSource::start(&probe::Config {
        target,
        rate_hz: 0,
        max_depth: config.sample.depth_max,
        calls: true,
        ..probe::Config::default()
    })
    .map_err(cannot)
}

/// Returns the failure of a run in which probes are not possible.
fn cannot(error: probe::Error) -> Failure {
    Failure::new(Exit::NotPossible, format!("cannot trace: {error}")).more("proftop doctor")
}
