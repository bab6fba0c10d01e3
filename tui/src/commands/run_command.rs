//! Looking after the command that a run without a screen started, and the
//! signals that end such a run.

/// Its end in time.
mod deadline;

pub use deadline::Deadline;

use crate::failure::{Exit, Failure};
use probe::child::{RunningCommand, StartError, exit_code};
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// The command's own status counts, as with `env`; without one, whether there
/// was anything to report.
pub async fn exit(
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

/// The command that was started: first it is let run, then it runs, then it has
/// ended.
pub enum CommandWatch {
    None,
    Starting {
        started: tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>,
        /// What ended us meanwhile, to be passed on.
        caught: Option<Number>,
    },
    Running(Running),
    Ended(ExitStatus),
}

pub struct Running {
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
    pub fn new(
        started: Option<tokio::sync::oneshot::Receiver<Result<RunningCommand, StartError>>>,
    ) -> Self {
        started.map_or(CommandWatch::None, |started| CommandWatch::Starting {
            started,
            caught: None,
        })
    }

    /// Waits for the end of the command, once. `None` if the engine failed
    /// before it was let run. Never comes without a command.
    pub async fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
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

    pub fn is_running(&self) -> bool {
        matches!(self, CommandWatch::Running(_))
    }

    /// Its status, once it has one. Reports may have been done before that.
    async fn status(&mut self) -> Result<Option<ExitStatus>, Failure> {
        match self {
            CommandWatch::None => Ok(None),
            CommandWatch::Ended(status) => Ok(Some(*status)),
            CommandWatch::Starting { .. } | CommandWatch::Running(_) => self.ended().await,
        }
    }

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

/// What ends a run early.
pub struct Signals([Option<Signal>; 3]);

impl Signals {
    pub fn listen() -> Result<Self, Failure> {
        let ignored = ignored_signals();
        let listen = |kind: SignalKind| {
            // As `nohup` and a shell's `&` want it.
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

/// Those that whoever started us ignored, the first signal as the lowest bit. proc(5)
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
