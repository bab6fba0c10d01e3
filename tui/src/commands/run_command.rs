//! Watches the command that a run without a screen has started, and the signals that end such a
//! run.

/// Limits the time to exit after a signal.
mod deadline;

pub use deadline::Deadline;

use crate::failure::{Exit, Failure};
use crate::stderr;
use engine::process_end;
use probe::child::{RunningCommand, StartError, exit_code};
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// Waits for the command to end, and returns its status as that of proftop, as `env` does. A
/// message says that the command is still running. Without a command, the status says whether there
/// were samples; `has_samples` may also be true because the reader closed the output before that
/// was known.
pub async fn exit(
    mut command: CommandWatch,
    mut signals: Signals,
    has_samples: bool,
) -> Result<Exit, Failure> {
    if matches!(command, CommandWatch::Running(_)) {
        stderr::say("the command goes on, and is waited for (^C ends it)");
    }
    let status = loop {
        tokio::select! {
            status = command.status() => break status?,
            caught = signals.any() => command.pass_on(caught),
        }
    };
    Ok(match status {
        Some(status) => Exit::Command(exit_code(status)),
        None if has_samples => Exit::Done,
        None => Exit::NoSamples,
    })
}

/// The command that was started for the user, and its state.
pub enum CommandWatch {
    None,
    Starting {
        started: tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>,
        /// A signal that arrived before the command runs, and is passed on when it does.
        caught: Option<Number>,
    },
    Running(Running),
    Ended(ExitStatus),
}

/// A command that runs, or whose end was not noticed yet.
pub struct Running {
    waiting: JoinHandle<std::io::Result<ExitStatus>>,
    /// Refers to this process, never to a later one with the same pid. None before Linux 5.3.
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

    /// Passes a signal that ends this run on to the command. The first ^C is not passed on: the
    /// terminal has sent it to the command as well, which may want to finish its work. The second
    /// one ends the command. All other signals were sent to proftop alone.
    fn pass_on(&mut self, caught: Number) {
        let is_first = !std::mem::replace(&mut self.interrupted, true);
        let number = match caught {
            Number::INT if is_first => return,
            Number::INT => Number::TERM,
            other => other,
        };
        if let Some(process) = &self.process {
            // Fails if the command has ended.
            let _ = pidfd_send_signal(process, number);
        }
    }
}

impl CommandWatch {
    /// Starts to watch the command, whose start is reported through `started`. None if there is no
    /// command.
    pub fn new(
        started: Option<tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>>,
    ) -> Self {
        started.map_or(CommandWatch::None, |started| CommandWatch::Starting {
            started,
            caught: None,
        })
    }

    /// Waits for the command to end, and returns a sentence about it with `name` for the command.
    /// None if the engine failed before the command could run. Waits forever if there is no
    /// command, or its end was returned before, so that this can be a branch of `select!`.
    pub async fn ended(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let status = self.end().await?;
        Ok(status.map(|status| process_end::words(name, status)))
    }

    /// Waits as [`Self::ended`] does, and returns the status.
    async fn end(&mut self) -> Result<Option<ExitStatus>, Failure> {
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

    /// Waits for the command to end, unless it has, and returns its status. None if there is no
    /// command.
    async fn status(&mut self) -> Result<Option<ExitStatus>, Failure> {
        match self {
            CommandWatch::None => Ok(None),
            CommandWatch::Ended(status) => Ok(Some(*status)),
            CommandWatch::Starting { .. } | CommandWatch::Running(_) => self.end().await,
        }
    }

    /// Passes a signal that ends this run on to the command. If the command does not run yet, the
    /// signal is passed on as soon as it does.
    pub fn pass_on(&mut self, caught: Number) {
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

/// The signals that end a run early: SIGINT, SIGTERM and SIGHUP.
pub struct Signals([Option<Signal>; 3]);

impl Signals {
    /// Starts to receive the signals, except those that are ignored since the start of this
    /// process. It is an error if there is no event loop.
    pub fn listen() -> Result<Self, Failure> {
        let ignored = ignored_signals();
        let listen = |kind: SignalKind| {
            // `nohup`, and `&` in a script, start programs with a signal ignored. It stays ignored.
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                return Ok(None);
            }
            let listening = signal(kind).map(Some);
            listening
                .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the next signal, and returns its number.
    pub async fn any(&mut self) -> Number {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = caught(interrupt) => Number::INT,
            () = caught(terminate) => Number::TERM,
            () = caught(hangup) => Number::HUP,
        }
    }
}

async fn caught(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Returns the set of signals that are ignored since the start of this process. Signal 1 is the
/// lowest bit, see `SigIgn` in proc(5).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
