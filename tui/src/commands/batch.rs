//! `--batch`: one report after each delay, to standard output or a file; no
//! screen.

mod output;

use super::{Subject, sampling};
use crate::batch::BatchReport;
use crate::cli::{BatchConfig, Config};
use crate::engine::{Command, Schedule};
use crate::failure::{Exit, Failure};
use crate::snapshot::Snapshot;
use crate::trace::StartTrace;
use output::Output;
use probe::child::{RunningCommand, StartError, exit_code};
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;

pub fn run(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?;
    runtime.block_on(report(config, subject, batch))
}

async fn report(config: &Config, subject: Subject, batch: &BatchConfig) -> Result<Exit, Failure> {
    // Before anything is sampled: a file that cannot be written should cost
    // nobody ten seconds.
    let mut output = Output::open(batch)?;
    let mut signals = Signals::listen()?;
    let (publish, mut reports) = unbounded_channel();
    let schedule = Schedule::Reports {
        delay: config.show.delay,
        count: batch.reports_max.map(u64::from),
    };
    let publish = Box::new(move |snapshot| publish.send(snapshot).is_ok());
    let mut sampling = sampling::start(config, subject, schedule, publish)?;
    let mut command = CommandWatch::new(sampling.started.take());
    let mut trace = StartTrace::new();
    let mut samples = 0;
    loop {
        tokio::select! {
            snapshot = reports.recv() => {
                let Some(snapshot) = snapshot else { break };
                trace.look(&snapshot);
                samples += snapshot.report.samples;
                if !output.write(&render(&snapshot, config, batch, &output))? {
                    break;
                }
            }
            ended = command.ended() => {
                let words = match ended? {
                    Some(status) => sampling::how_it_ended(&sampling.scope, status),
                    None => break,
                };
                let at_ns = probe::now_ns();
                // An engine that is gone has nothing left to report.
                let _ = sampling.commands.send(Command::TargetEnded { words, at_ns });
            }
            caught = signals.any() => {
                command.pass_on(caught);
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
    exit(command, signals, samples).await
}

/// The command's own status counts, as with `env`; without one, whether there
/// was anything to report.
async fn exit(
    mut command: CommandWatch,
    mut signals: Signals,
    samples: u64,
) -> Result<Exit, Failure> {
    let status = loop {
        tokio::select! {
            status = command.status() => break status?,
            caught = signals.any() => command.pass_on(caught),
        }
    };
    Ok(match status {
        Some(status) => Exit::Command(exit_code(status)),
        None if samples == 0 => Exit::NoSamples,
        None => Exit::Done,
    })
}

fn render(snapshot: &Snapshot, config: &Config, batch: &BatchConfig, output: &Output) -> String {
    let report = BatchReport {
        snapshot,
        version: env!("CARGO_PKG_VERSION"),
        time_unix_ms: unix_ms_at(snapshot.report.window.end_ns),
        pids: &config.target.pids,
        top: batch.rows_max,
        width: None,
    };
    report.render(batch.format, output.is_empty())
}

/// The wall clock at a time on the clock of the samples.
fn unix_ms_at(time_ns: u64) -> u64 {
    let ago = Duration::from_nanos(probe::now_ns().saturating_sub(time_ns));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(ago).as_millis() as u64
}

/// The command that was started: first it is let run, then it runs, then it has
/// ended.
enum CommandWatch {
    None,
    Starting {
        started: tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>,
        /// What ended us meanwhile, to be passed on.
        caught: Option<Number>,
    },
    Running(Running),
    Ended(ExitStatus),
}

struct Running {
    waiting: JoinHandle<std::io::Result<ExitStatus>>,
    /// Names the process and no other, even when it has ended. Missing before
    /// Linux 5.3.
    process: Option<OwnedFd>,
    interrupted: bool,
}

impl Running {
    fn new(mut command: RunningCommand) -> Self {
        let pid = Pid::from_raw(command.pid().cast_signed());
        Self {
            process: pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
            waiting: tokio::task::spawn_blocking(move || command.wait()),
            interrupted: false,
        }
    }

    /// A ^C at the terminal has reached the command already, which may have
    /// something to say about it; who asks again does not want to wait. What
    /// ends us alone has to end the command, too: nobody else knows of it.
    fn pass_on(&mut self, caught: Number) {
        let is_first = !std::mem::replace(&mut self.interrupted, true);
        let number = match caught {
            Number::INT if is_first => return,
            Number::INT => Number::TERM,
            other => other,
        };
        if let Some(process) = &self.process {
            // It may have ended.
            let _ = pidfd_send_signal(process, number);
        }
    }
}

impl CommandWatch {
    fn new(
        started: Option<tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>>,
    ) -> Self {
        started.map_or(CommandWatch::None, |started| CommandWatch::Starting {
            started,
            caught: None,
        })
    }

    /// Waits for the end of the command, once. Nothing if the engine failed
    /// before it was let run. Never comes without a command.
    async fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        if let CommandWatch::Starting { started, caught } = self {
            let Ok(result) = started.await else {
                *self = CommandWatch::None;
                return Ok(None);
            };
            let mut running = Running::new(result?);
            if let Some(caught) = *caught {
                running.pass_on(caught);
            }
            *self = CommandWatch::Running(running);
        }
        let CommandWatch::Running(running) = self else {
            return std::future::pending().await;
        };
        let status = waited(&mut running.waiting).await?;
        *self = CommandWatch::Ended(status);
        Ok(Some(status))
    }

    /// Its status, once it has one. Reports may have been done before that.
    async fn status(&mut self) -> Result<Option<ExitStatus>, Failure> {
        match self {
            CommandWatch::None => Ok(None),
            CommandWatch::Ended(status) => Ok(Some(*status)),
            CommandWatch::Starting { .. } | CommandWatch::Running(_) => self.ended().await,
        }
    }

    fn pass_on(&mut self, caught: Number) {
        match self {
            CommandWatch::Running(running) => running.pass_on(caught),
            CommandWatch::Starting { caught: last, .. } => *last = Some(caught),
            CommandWatch::None | CommandWatch::Ended(_) => {}
        }
    }
}

async fn waited(
    waiting: &mut JoinHandle<std::io::Result<ExitStatus>>,
) -> Result<ExitStatus, Failure> {
    match waiting.await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(error)) => Err(Failure::failed(format!(
            "cannot wait for the command: {error}"
        ))),
        Err(error) => Err(Failure::failed(format!(
            "the thread that waited is gone: {error}"
        ))),
    }
}

/// What ends a run early.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn any(&mut self) -> Number {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => Number::INT,
            _ = terminate.recv() => Number::TERM,
            _ = hangup.recv() => Number::HUP,
        }
    }
}
