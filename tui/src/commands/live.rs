//! Samples a process now, for a command that needs a recording. It runs `proftop record` with a
//! pipe to this process, so that rights, messages and failures are the same as for `record`.

use super::bpf_or_perf::Sampler;
use super::input::Input;
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
    /// Starts recording the process for the given time. It is an error if our own program cannot be
    /// started.
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

    /// Waits until the time is over, and returns the recording without reading it. The messages of
    /// the child are passed on to the user.
    pub fn record(mut self) -> Result<Input, Failure> {
        let mut samples = self.record.stdout.take().expect("it is piped");
        let name = format!("the recording of {}", self.words);
        let recorded = Input::copied(&mut samples, name);
        let (ended, said) = self.wait();
        for line in said {
            stderr::write(format_args!("{line}\n"));
        }
        ended?;
        recorded
    }

    /// Waits until the time is over, and returns the recording. The error is one line: the first
    /// message of the child, else why the recording cannot be read.
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

    /// Returns the recording, and the messages of the child.
    fn finish(&mut self) -> (Result<Opened, Failure>, Vec<String>) {
        let samples = self.record.stdout.take().expect("it is piped");
        let opened = open_file::read_all(Box::new(samples));
        let (ended, said) = self.wait();
        let words = &self.words;
        let opened = ended.and_then(|()| {
            opened.map_err(|error| {
                Failure::failed(format!("cannot read the recording of {words}: {error}"))
            })
        });
        (opened, said)
    }

    /// Waits for the end of the child, and returns whether it has recorded, and its messages. Those
    /// about its standard output are left out, because that is a pipe to this process, which the user
    /// does not know of.
    fn wait(&mut self) -> (Result<(), Failure>, Vec<String>) {
        let said = self.read_words();
        let status = self.record.wait();
        let code = status.ok().and_then(|status| status.code()).unwrap_or(1);
        // A recording without samples is a result, too.
        let is_done = code == 0 || code == i32::from(Exit::NoSamples.code());
        let ended = if is_done {
            Ok(())
        } else {
            // The child has written the reason to standard error.
            Err(Failure::new(
                Exit::Command(code.try_into().unwrap_or(1)),
                format!("{} was not recorded", self.words),
            ))
        };
        (ended, said)
    }

    /// Reads the messages of the child. They are few enough for its pipe to hold them until it
    /// ends.
    fn read_words(&mut self) -> Vec<String> {
        let mut said = String::new();
        if let Some(mut pipe) = self.record.stderr.take() {
            // If reading fails, only messages are missing.
            _ = pipe.read_to_string(&mut said);
        }
        let lines = said
            .lines()
            .filter(|line| !line.contains(" in standard output, "));
        lines.map(str::to_owned).collect()
    }
}

/// Returns why a process cannot be recorded, as far as that is known in advance. The child would
/// say the same, but with its own command line instead of the user's.
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
        // These calls fail if the child has ended, which is the usual case.
        _ = self.record.kill();
        _ = self.record.wait();
    }
}
