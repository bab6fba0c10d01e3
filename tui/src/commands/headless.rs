//! A *headless* run has no screen: the engine makes a report after each delay. This module handles
//! the end of the started command and the signals that end a run; `--batch` and `record` handle the
//! reports.

use super::Subject;
use super::run_command::{self, CommandWatch, Deadline, Signals};
use super::sampling::{self, Sampling};
use crate::cli::Config;
use crate::failure::{Exit, Failure};
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command, Consent, Schedule};
use probe::haste;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A running engine without a screen.
pub struct HeadlessRun {
    sampling: Sampling,
    reports: UnboundedReceiver<Arc<Snapshot>>,
    command: CommandWatch,
    signals: Signals,
    deadline: Deadline,
}

impl HeadlessRun {
    /// Starts sampling, for `count` reports; None means until something ends the run. Open the
    /// output before: then a file that cannot be written is reported at once, and not after the
    /// first delay.
    pub fn start(
        config: &Config,
        subject: Subject,
        count: Option<u64>,
        names: AwaitNames,
    ) -> Result<Self, Failure> {
        let signals = Signals::listen()?;
        let deadline = Deadline::start()?;
        let (publish, reports) = unbounded_channel();
        let schedule = Schedule::Reports {
            delay: config.show.delay,
            count,
            names,
        };
        let publish = Box::new(move |snapshot| publish.send(snapshot).is_ok());
        let sampling = sampling::start(config, subject, schedule, Consent::Given, publish)?;
        let mut sampling = sampling.give_up_rights();
        Ok(HeadlessRun {
            command: CommandWatch::new(sampling.started.take()),
            sampling,
            reports,
            signals,
            deadline,
        })
    }

    /// Waits for the next report. None after the last one, when all reports are made, the target
    /// has ended, or the engine has failed. It is cancel safe, so it may be a branch of `select!`.
    pub async fn next(&mut self) -> Result<Option<Arc<Snapshot>>, Failure> {
        loop {
            tokio::select! {
                snapshot = self.reports.recv() => return Ok(snapshot),
                ended = self.command.ended(&self.sampling.scope) => {
                    let Some(words) = ended? else { return Ok(None) };
                    let at_ns = probe::now_ns();
                    self.send(Command::TargetEnded { words, at_ns });
                }
                caught = self.signals.any() => {
                    haste::begin();
                    self.command.pass_on(caught);
                    // The engine makes a last report of the samples so far.
                    self.send(Command::Finish);
                }
            }
        }
    }

    /// Sends the engine a command. If the engine has ended, the command is dropped.
    pub fn send(&self, command: Command) {
        let _ = self.sampling.commands.send(command);
    }

    /// Ends sampling. The error is the reason for which the engine had failed before.
    pub fn stop(mut self) -> Result<Stopped, Failure> {
        self.reports.close();
        if let Some(sentence) = self.sampling.engine.finish() {
            return Err(Failure::of_sampling(&sentence));
        }
        Ok(Stopped {
            command: self.command,
            signals: self.signals,
            deadline: self.deadline,
        })
    }
}

/// A run that has ended sampling. Until [`Stopped::exit`], a signal limits the time for writing the
/// rest.
pub struct Stopped {
    command: CommandWatch,
    signals: Signals,
    deadline: Deadline,
}

impl Stopped {
    /// Waits for the command, if one was started, and returns the exit status of the run; see
    /// [`run_command::exit`].
    pub async fn exit(self, has_samples: bool) -> Result<Exit, Failure> {
        drop(self.deadline);
        run_command::exit(self.command, self.signals, has_samples).await
    }
}
