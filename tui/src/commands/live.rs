//! Samples of a process that are taken now, for a command that needs a recording: `record`
//! with its pipe to us, so that what it needs, says and fails with is what it always does.

use super::bpf_or_perf::Sampler;
use super::open_file::{self, Opened};
use super::reach::probe_target;
use crate::choices::EngineChoice;
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::target::{Target, TargetSpec};
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A recording that a child process is making. Dropping it ends the child.
pub struct Live {
    record: Child,
    words: String,
}

impl Live {
    /// Starts to record the process for the given time. An error if we cannot be started
    /// again.
    pub fn start(pid: u32, duration: Duration) -> Result<Live, Failure> {
        let words = format!("pid {pid}");
        let cannot = |error| Failure::failed(format!("cannot record {words}: {error}"));
        let duration = format!("{}s", duration.as_secs());
        let own = std::env::current_exe().map_err(cannot)?;
        let mut record = Command::new(own);
        record.args(["record", "-p", &pid.to_string()]);
        record.args(["-d", &duration, "-o", "-"]);
        record.stdin(Stdio::null()).stdout(Stdio::piped());
        let record = record.stderr(Stdio::piped()).spawn();
        Ok(Live {
            record: record.map_err(cannot)?,
            words,
        })
    }

    /// Waits until the time is over, and returns what was recorded. What the recording said
    /// is passed on to the user.
    pub fn open(mut self) -> Result<Opened, Failure> {
        let (opened, said) = self.finish();
        for line in said {
            stderr::write(format_args!("{line}\n"));
        }
        opened
    }

    /// Waits until the time is over, and returns what was recorded. The error is what the
    /// recording said, else why it cannot be read, in one line.
    pub fn open_quietly(mut self) -> Result<Opened, String> {
        let (opened, said) = self.finish();
        opened.map_err(|failure| match said.into_iter().next() {
            Some(line) => match line.strip_prefix("proftop: ") {
                Some(sentence) => sentence.to_owned(),
                None => line,
            },
            None => failure.message,
        })
    }

    /// Returns what was recorded, and the lines that the child said. What it has written to
    /// its standard output is not among them: this is a pipe to us, and its user sees
    /// nothing there.
    fn finish(&mut self) -> (Result<Opened, Failure>, Vec<String>) {
        let samples = self.record.stdout.take().expect("it is piped");
        let opened = open_file::read_all(Box::new(samples));
        let said = self.read_words();
        let status = self.record.wait();
        let code = status.ok().and_then(|status| status.code()).unwrap_or(1);
        // No samples: that is an answer as well.
        let is_done = code == 0 || code == i32::from(Exit::NoSamples.code());
        let words = &self.words;
        let opened = if is_done {
            opened.map_err(|error| {
                Failure::failed(format!("cannot read the recording of {words}: {error}"))
            })
        } else {
            // It has said the reason.
            Err(Failure::new(
                Exit::Command(code.try_into().unwrap_or(1)),
                format!("{words} was not recorded"),
            ))
        };
        (opened, said)
    }

    /// Reads the lines that the child said. They are few, and its pipe holds them until its
    /// end.
    fn read_words(&mut self) -> Vec<String> {
        let mut said = String::new();
        if let Some(mut pipe) = self.record.stderr.take() {
            // What cannot be read is missing words only.
            _ = pipe.read_to_string(&mut said);
        }
        let lines = said
            .lines()
            .filter(|line| !line.contains(" in standard output, "));
        lines.map(str::to_owned).collect()
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
