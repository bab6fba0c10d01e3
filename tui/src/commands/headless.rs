//! A *headless* run has no screen: the engine reports after each delay. The end of the command that
//! was started and the signals that end a run are handled here; what becomes of the reports is up to
//! `--batch` and `record`.

use super::Subject;
use super::run_command::{self, CommandWatch, Deadline, Signals};
use super::sampling::{self, Sampling};
use crate::cli::Config;
use crate::failure::{Exit, Failure};
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command, Consent, Schedule};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A run whose engine samples.
pub struct HeadlessRun {
    sampling: Sampling,
    reports: UnboundedReceiver<Arc<Snapshot>>,
    command: CommandWatch,
    signals: Signals,
    deadline: Deadline,
}

impl HeadlessRun {
    /// Starts to sample, for `count` reports; None: until something ends the run. What is to be
    /// written is opened before, so that a file that cannot be written is reported at once and not
    /// after the first delay.
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

    /// Waits for the next report. None after the last one: all are there, the target is gone, or
    /// the engine has failed. Nothing is lost if it is given up, so that it can stand in a
    /// `select!`.
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
                    self.command.pass_on(caught);
                    // The engine makes a last report of what came so far.
                    self.send(Command::Finish);
                }
            }
        }
    }

    /// Sends the engine a command. An engine that is gone has nothing left to report.
    pub fn send(&self, command: Command) {
        let _ = self.sampling.commands.send(command);
    }

    /// Ends sampling. The error says why the engine had failed.
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

/// A run that samples no more. Until [`Stopped::exit`], a signal gives what is still to be written
/// a limited time.
pub struct Stopped {
    command: CommandWatch,
    signals: Signals,
    deadline: Deadline,
}

impl Stopped {
    /// Waits for the command, if one was started, and returns the status of the whole run; see
    /// [`run_command::exit`].
    pub async fn exit(self, has_samples: bool) -> Result<Exit, Failure> {
        drop(self.deadline);
        run_command::exit(self.command, self.signals, has_samples).await
    }
}
