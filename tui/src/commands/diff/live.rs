//! A side of the comparison that is recorded now: `record` with its pipe to us,
//! so that what it needs, says and fails with is what it always does.

use crate::choices::{EngineChoice, LiveOperand};
use crate::commands::open_file;
use crate::commands::open_file::Opened;
use crate::commands::sampler::{Sampler, probe_target};
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::target::{Target, TargetSpec};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

/// A recording that a child process is making. Dropping it ends the child.
pub struct Live {
    record: Child,
    words: String,
}

impl Live {
    /// Starts to record the process for the given time. An error if we cannot be started
    /// again.
    pub fn start(operand: &LiveOperand) -> Result<Live, Failure> {
        let words = format!("pid {}", operand.pid);
        let cannot = |error| Failure::failed(format!("cannot record {words}: {error}"));
        let duration = format!("{}s", operand.duration.as_secs());
        let own = std::env::current_exe().map_err(cannot)?;
        let mut record = Command::new(own);
        record.args(["record", "-p", &operand.pid.to_string()]);
        record.args(["-d", &duration, "-o", "-"]);
        record.stdin(Stdio::null()).stdout(Stdio::piped());
        let record = record.stderr(Stdio::piped()).spawn();
        Ok(Live {
            record: record.map_err(cannot)?,
            words,
        })
    }

    /// Waits until the time is over, and returns what was recorded.
    pub fn open(mut self) -> Result<Opened, Failure> {
        let samples = self.record.stdout.take().expect("it is piped");
        let opened = open_file::read_all(Box::new(samples));
        self.pass_on_words();
        let status = self.record.wait();
        let code = status.ok().and_then(|status| status.code()).unwrap_or(1);
        // No samples: that is an answer as well.
        let is_done = code == 0 || code == i32::from(Exit::NoSamples.code());
        if !is_done {
            // It has said the reason, which was passed on.
            let why = format!("{} was not recorded", self.words);
            return Err(Failure::new(
                Exit::Command(code.try_into().unwrap_or(1)),
                why,
            ));
        }
        opened.map_err(|error| {
            let words = &self.words;
            Failure::failed(format!("cannot read the recording of {words}: {error}"))
        })
    }

    /// Prints what the child said, but not that it has written to its standard output: this
    /// is a pipe to us, and its user sees nothing there. It says few lines, which the pipe
    /// holds until its end.
    fn pass_on_words(&mut self) {
        let mut said = String::new();
        if let Some(mut pipe) = self.record.stderr.take() {
            // What cannot be read is missing words only.
            _ = pipe.read_to_string(&mut said);
        }
        let lines = said
            .lines()
            .filter(|line| !line.contains(" in standard output, "));
        lines.for_each(|line| stderr::write(format_args!("{line}\n")));
    }
}

/// Returns why a process cannot be recorded, as far as that is known before. The recording
/// would say it as well, but with its own command line in place of the one that was typed.
pub fn check(pid: u32) -> Result<(), Failure> {
    let spec = TargetSpec {
        pids: vec![pid],
        ..TargetSpec::default()
    };
    let target = Target::resolve(&spec)?;
    Sampler::choose(EngineChoice::Auto, &probe_target(&target)).map(drop)
}

impl Drop for Live {
    fn drop(&mut self) {
        // These calls fail if it has ended, which is usual.
        _ = self.record.kill();
        _ = self.record.wait();
    }
}
