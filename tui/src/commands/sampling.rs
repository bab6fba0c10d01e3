//! Starts the engine on a subject, for the screen and for batch output, and lets a held command
//! run.

use super::Subject;
use super::bpf_or_perf::Sampler;
use super::reach::{self, probe_target};
use crate::cli::{Config, Mode, RingConfig};
use crate::condition::Condition;
use crate::failure::Failure;
use crate::target::Target;
use crate::values::Percent;
use engine::snapshot::Snapshot;
use engine::{
    Commands, Consent, Engine, FirstProbes, LineReading, MakeSource, Rows, Schedule, Settings,
};
use probe::child::{HeldCommand, RunningCommand, StartError};
use probe::confine::{self, Duty};
use probe::memory::room::Room;
use profile::{Filter, Limits};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A running engine, and the command that it samples, if one was started.
pub struct Sampling {
    pub engine: Engine,
    pub commands: Commands,
    /// The target in words.
    pub scope: Arc<str>,
    /// Receives the result when the engine has let the command run.
    pub started: Option<oneshot::Receiver<Result<RunningCommand, StartError>>>,
}

impl Sampling {
    /// Drops the rights of the calling thread that are needed to start an engine, because it starts
    /// no other one.
    pub fn give_up_rights(self) -> Self {
        confine::thread(Duty::Showing);
        self
    }
}

/// Returns which rows the reports of this run need.
fn rows(config: &Config, schedule: &Schedule) -> Rows {
    let is_of_processes =
        |ring: &RingConfig| ring.conditions.iter().any(Condition::is_of_a_process);
    match (&config.mode, schedule) {
        (Mode::Record(record), _) if !record.ring.as_ref().is_some_and(is_of_processes) => {
            Rows::Absent
        }
        (_, Schedule::Live { .. }) => Rows::WithTrends,
        (_, Schedule::Reports { .. }) => Rows::WithoutTrends,
    }
}

/// Starts the engine. It attaches to a held command before letting it run. The calling thread keeps
/// the rights to start another engine.
pub fn start(
    config: &Config,
    subject: Subject,
    schedule: Schedule,
    consent: Consent,
    publish: Box<dyn FnMut(Arc<Snapshot>) -> bool + Send>,
) -> Result<Sampling, Failure> {
    let Subject {
        target,
        held,
        sampler,
    } = subject;
    let probes = match &config.mode {
        Mode::Record(record) => record.probes.clone(),
        _ => FirstProbes::default(),
    };
    // The screen and the plain dialog can place probes later.
    let calls = matches!(schedule, Schedule::Live { .. }) || !probes.functions.is_empty();
    // The screen and the dialog filter by themselves, with a filter that may change.
    let filter = match schedule {
        Schedule::Live { .. } => Filter::default(),
        Schedule::Reports { .. } => config.look.filter.clone(),
    };
    let room = Room::of_this_process();
    let settings = Settings {
        limits: Limits {
            keep: config.sample.keep,
            memory_bytes: room.own_bytes(config.sample.memory_bytes_max) as usize,
        },
        room,
        scope: target.words.clone(),
        cpus: target.cpus.clone(),
        rate_hz: config.sample.rate_hz,
        counted: config.sample.counted.clone(),
        rows: rows(config, &schedule),
        filter,
        pids: target.pids.clone(),
        reach: if probes.functions.is_empty() {
            reach::of_target(&target)
        } else {
            reach::of(config, &target)
        },
        probes,
        consent,
        lines: match &config.mode {
            Mode::Record(record) if record.ring.is_some() => LineReading::WhenAsked,
            _ if !room.has_lines() => LineReading::WhenAsked,
            _ => LineReading::WithNames,
        },
        budget_percent: config.sample.budget.map(Percent::percent),
        schedule,
    };
    let (ready, started) = release_when_ready(held);
    let engine = Engine::start(
        settings,
        source(config, &target, sampler, calls, room),
        ready,
        publish,
    )
    .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    Ok(Sampling {
        commands: engine.commands().clone(),
        engine,
        scope: target.words,
        started,
    })
}

/// Receives the result of letting a held command run.
type Started = oneshot::Receiver<Result<RunningCommand, StartError>>;

/// Returns the function that the engine calls when everything is attached: it lets the held command
/// run, so that even its first instruction is sampled. Without a command it does nothing.
fn release_when_ready(held: Option<HeldCommand>) -> (Box<dyn FnOnce() + Send>, Option<Started>) {
    let Some(held) = held else {
        return (Box::new(|| {}), None);
    };
    let (tell, started) = oneshot::channel();
    let ready = move || {
        // Sending fails if the program is ending.
        let _ = tell.send(held.release());
    };
    (Box::new(ready), Some(started))
}

/// Returns the function that makes the source of samples, on the thread that will drain it. It also
/// compiles the pattern of `--comm`, whose errors are errors of the start.
fn source(
    config: &Config,
    target: &Target,
    sampler: Sampler,
    calls: bool,
    room: Room,
) -> MakeSource {
    let pattern = target.comm.as_ref().map(|comm| comm.as_str().to_string());
    let usual = probe::Config::default();
    let tables = usual.tables.clone();
    let probe_config = probe::Config {
        mappings_max: room.mappings(usual.mappings_max),
        ring_bytes: room.ring_bytes(),
        tables: probe::tables::Limits {
            table_bytes: room.table_bytes(tables.table_bytes),
            information_bytes: room.information_bytes(),
            one_by_one: room.group_bytes().is_some(),
            ..tables
        },
        target: probe_target(target),
        rate_hz: config.sample.rate_hz,
        max_depth: config.sample.depth_max,
        calls,
        waits: config.sample.counted.has_waits(),
        happening: config.sample.counted.happening().cloned(),
        ..usual
    };
    Box::new(move || {
        let mut config = probe_config;
        if let Some(pattern) = pattern {
            // Names of threads are bytes, not text.
            let compiled = regex::bytes::Regex::new(&pattern);
            config.target.comm = Some(compiled.map_err(|error| format!("--comm: {error}"))?);
        }
        sampler.start(&config)
    })
}
