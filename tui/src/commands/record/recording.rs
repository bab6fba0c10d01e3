//! A file that is being recorded, and what is said of it.

use super::later::Later;
use crate::cli::RecordConfig;
use crate::failure::Failure;
use crate::output::Output;
use crate::reader::Reader;
use crate::words::units::{bytes, counted};
use engine::snapshot::Snapshot;
use profile::formats::{FormatError, pft};
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};

pub struct Recording {
    writer: pft::Writer<Sink>,
    /// What the file is called in a sentence.
    name: String,
    /// What is done at the end, if the file is no .pft.
    later: Option<Later>,
    is_shown: bool,
}

/// Where the bytes of the .pft go.
enum Sink {
    /// To where the user wants them. A pipe that nobody reads any more is no failure.
    Output(Output),
    /// To a file without a name.
    Kept(File),
}

/// What a pipe says when nobody reads it any more.
const ENOUGH: &str = "the reader has had enough";

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let output = match self {
            Sink::Output(output) => output,
            Sink::Kept(file) => return file.write(bytes),
        };
        match output.write(bytes) {
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
    /// Everything that can be refused is refused here, before a sample is taken.
    pub fn open(record: &RecordConfig) -> Result<(Self, Reader), Failure> {
        if record.file.is_none() && io::stdout().is_terminal() && !record.is_text() {
            return Err(Failure::usage(
                "-o - writes bytes that no terminal shows: pipe them on, or name a file",
            ));
        }
        let output = Output::open(record.file.as_deref(), record.overwrite)?;
        let name = output.name().to_string();
        let reader = output.reader()?;
        let (sink, later) = match record.is_streamed() {
            true => (Sink::Output(output), None),
            false => {
                let (later, file) = Later::begin(record, output)?;
                (Sink::Kept(file), Some(later))
            }
        };
        let recording = Self {
            writer: pft::Writer::new(sink).map_err(|error| refused(&error))?,
            name,
            later,
            // Who reads the pipe says what comes, perhaps on this terminal.
            is_shown: record.file.is_some() && io::stderr().is_terminal(),
        };
        Ok((recording, reader))
    }

    /// False if the reader has gone away: it has had enough, and that is fine.
    pub fn append(&mut self, snapshot: &Snapshot, until_ns: Option<u64>) -> Result<bool, Failure> {
        match &snapshot.view {
            Some(view) => taken(self.writer.append(view, until_ns)),
            None => Ok(true),
        }
    }

    pub fn finish(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let mut is_wanted = true;
        if let Some(view) = &snapshot.view {
            let end_ns = snapshot.report.window.end_ns;
            let written = self.writer.append_last(view, end_ns);
            is_wanted = taken(written.and_then(|()| self.writer.finish(view)))?;
        }
        self.clear_line();
        let notes = snapshot.health.notes.iter();
        notes.for_each(|note| eprintln!("proftop: {note}"));
        let written = match self.later.take().filter(|_| is_wanted) {
            Some(later) => later.write()?,
            None => self.writer.bytes(),
        };
        eprintln!(
            "proftop: {}, {} in {}, {} lost",
            counted(self.samples(), "sample"),
            bytes(written),
            self.name,
            snapshot.health.lost_run
        );
        Ok(())
    }

    pub fn samples(&self) -> u64 {
        self.writer.samples()
    }

    fn summary(&self) -> String {
        let samples = counted(self.samples(), "sample");
        match self.later {
            Some(_) => format!("{samples} for {}, written at the end", self.name),
            None => format!("{samples}, {} in {}", bytes(self.writer.bytes()), self.name),
        }
    }

    pub fn show_progress(&self, snapshot: &Snapshot) {
        if self.is_shown {
            let seconds = snapshot.run.elapsed.as_secs();
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            let lost = snapshot.health.lost_run;
            let line = self.summary();
            eprint!("\r{minutes}:{seconds:02}  {line}, {lost} lost  (^C ends)\x1b[K");
        }
    }

    pub fn say_written(&self) {
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
    Failure::failed(format!("cannot go on recording: {error}"))
}
