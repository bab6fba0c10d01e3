//! `record`: samples to a file, or down a pipe, and no screen.
//!
//! The file is whole after every second. ^C ends the recording and writes what
//! is left, SIGUSR2 writes it and goes on.

use super::run_command::{CommandWatch, Deadline, Signals, exit};
use super::{Subject, sampling};
use crate::cli::{Config, RecordConfig};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::reader::Reader;
use crate::words::units::counted;
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command, Schedule};
use profile::formats::{FormatError, pft};
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;

pub fn run(config: &Config, subject: Subject, record: &RecordConfig) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))?;
    runtime.block_on(recording(config, subject, record))
}

async fn recording(
    config: &Config,
    subject: Subject,
    record: &RecordConfig,
) -> Result<Exit, Failure> {
    let (mut file, reader) = Recording::open(record)?;
    let mut signals = Signals::listen()?;
    let deadline = Deadline::start()?;
    let mut write_now = signal(SignalKind::user_defined2())
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    let (publish, mut snapshots) = unbounded_channel();
    let delay = config.show.delay;
    let schedule = Schedule::Reports {
        delay,
        count: record.duration.map(|all| steps(all, delay)),
        names: AwaitNames::Last,
    };
    let publish = Box::new(move |snapshot| publish.send(snapshot).is_ok());
    let mut sampling = sampling::start(config, subject, schedule, publish)?;
    let mut command = CommandWatch::new(sampling.started.take());
    let mut last: Option<Arc<Snapshot>> = None;
    loop {
        tokio::select! {
            snapshot = snapshots.recv() => {
                let Some(snapshot) = snapshot else { break };
                let wanted = file.append(&snapshot, Some(snapshot.report.window.end_ns))?;
                file.show_progress(&snapshot);
                last = Some(snapshot);
                if !wanted { break }
            }
            ended = command.ended() => {
                let words = match ended? {
                    Some(status) => sampling::how_it_ended(&sampling.scope, status),
                    None => break,
                };
                let at_ns = probe::now_ns();
                // An engine that is gone has nothing left to record.
                let _ = sampling.commands.send(Command::TargetEnded { words, at_ns });
            }
            Some(()) = write_now.recv() => {
                if let Some(last) = &last {
                    file.append(last, None)?;
                    file.say_written();
                }
            }
            // It has had enough.
            () = reader.gone() => break,
            caught = signals.any() => {
                command.pass_on(caught);
                let _ = sampling.commands.send(Command::Finish);
            }
        }
    }
    snapshots.close();
    if let Some(sentence) = sampling.engine.finish() {
        return Err(Failure::new(Exit::NotPossible, sentence).more("proftop doctor"));
    }
    if let Some(last) = &last {
        file.finish(last)?;
    }
    drop(deadline);
    if command.is_running() {
        eprintln!("proftop: the command goes on, and is waited for (^C ends it)");
    }
    exit(command, signals, file.samples()).await
}

fn steps(all: Duration, step: Duration) -> u64 {
    all.as_millis().div_ceil(step.as_millis().max(1)) as u64
}

/// The file and what is said of it.
struct Recording {
    writer: Option<pft::Writer<Pipe>>,
    name: String,
    is_shown: bool,
}

/// An [`Output`] as a writer. What its reader no longer wants is no error.
struct Pipe(Output);

/// What a pipe says when nobody reads it any more.
const ENOUGH: &str = "the reader has had enough";

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Ok(true) => Ok(bytes.len()),
            Ok(false) => Err(io::Error::new(io::ErrorKind::BrokenPipe, ENOUGH)),
            Err(failure) => Err(io::Error::other(failure.message)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Recording {
    fn open(record: &RecordConfig) -> Result<(Self, Reader), Failure> {
        if record.file.is_none() && io::stdout().is_terminal() {
            return Err(Failure::usage(
                "-o - writes bytes that no terminal shows: pipe them on, or name a file",
            ));
        }
        let output = Output::open(record.file.as_deref(), record.overwrite)?;
        let name = output.name().to_string();
        let reader = output.reader()?;
        let writer = pft::Writer::new(Pipe(output)).map_err(|error| refused(&error))?;
        let recording = Self {
            writer: Some(writer),
            name,
            // Who reads the pipe says what comes, perhaps on this terminal.
            is_shown: record.file.is_some() && io::stderr().is_terminal(),
        };
        Ok((recording, reader))
    }

    /// False if the reader has gone away: it has had enough, and that is fine.
    fn append(&mut self, snapshot: &Snapshot, until_ns: Option<u64>) -> Result<bool, Failure> {
        let (Some(writer), Some(view)) = (&mut self.writer, &snapshot.view) else {
            return Ok(true);
        };
        taken(writer.append(view, until_ns))
    }

    fn finish(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        if let (Some(writer), Some(view)) = (&mut self.writer, &snapshot.view) {
            let end_ns = snapshot.report.window.end_ns;
            let written = writer.append_last(view, end_ns);
            taken(written.and_then(|()| writer.finish(view)))?;
        }
        self.clear_line();
        let notes = snapshot.health.notes.iter();
        notes.for_each(|note| eprintln!("proftop: {note}"));
        eprintln!(
            "proftop: {}, {} lost",
            self.summary(),
            snapshot.health.lost_run
        );
        Ok(())
    }

    fn samples(&self) -> u64 {
        self.writer.as_ref().map_or(0, pft::Writer::samples)
    }

    fn summary(&self) -> String {
        let bytes = self.writer.as_ref().map_or(0, pft::Writer::bytes);
        let samples = counted(self.samples(), "sample");
        format!("{samples}, {} kB in {}", bytes.div_ceil(1000), self.name)
    }

    fn show_progress(&self, snapshot: &Snapshot) {
        if self.is_shown {
            let seconds = snapshot.elapsed.as_secs();
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            let lost = snapshot.health.lost_run;
            let line = self.summary();
            eprint!("\r{minutes}:{seconds:02}  {line}, {lost} lost  (^C ends)\x1b[K");
        }
    }

    fn say_written(&self) {
        self.clear_line();
        eprintln!("proftop: {} so far", self.summary());
    }

    fn clear_line(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

fn taken(written: Result<(), FormatError>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(FormatError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(refused(&error)),
    }
}

fn refused(error: &FormatError) -> Failure {
    Failure::failed(error.to_string())
}
