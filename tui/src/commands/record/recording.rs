//! A recording file, and the messages about it.

use super::later::Later;
use crate::cli::RecordConfig;
use crate::commands::pft_sink::Sink;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::reader::Reader;
use crate::stderr;
use crate::words::units::{bytes, counted};
use engine::snapshot::Snapshot;
use profile::formats::{FormatError, pft};
use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::rc::Rc;

/// The file to which samples are written while they arrive, and the messages about it.
pub struct Recording {
    writer: pft::Writer<Sink>,
    /// The length of a .pft without samples.
    head_bytes: u64,
    /// The name of the file in messages.
    name: String,
    /// The conversion at the end; None for a .pft.
    later: Option<Later>,
    /// Whether the reader of the pipe has closed it.
    is_left: Rc<Cell<bool>>,
    is_shown: bool,
}

impl Recording {
    /// Opens the file. All that can be refused is refused here, before the first sample. The
    /// `Reader` notices when the reader of the pipe is gone.
    pub fn open(record: &RecordConfig) -> Result<(Self, Reader), Failure> {
        if record.file.is_none() && !record.is_text() {
            output::refuse_terminal()?;
        }
        let mut output = Output::open(record.file.as_deref(), record.overwrite)?;
        let name = output.name().to_string();
        let reader = output.reader()?;
        let is_left = Rc::new(Cell::new(false));
        let (sink, later) = if record.is_streamed() {
            (Sink::new(output, Rc::clone(&is_left)), None)
        } else {
            let (later, file) = Later::begin(record, output)?;
            (Sink::Kept(file), Some(later))
        };
        let writer = pft::Writer::new(sink).map_err(|error| refused(&error))?;
        let recording = Self {
            head_bytes: writer.bytes(),
            writer,
            name,
            later,
            is_left,
            // The program that reads the pipe may use this terminal, so no progress is printed.
            is_shown: record.file.is_some() && io::stderr().is_terminal(),
        };
        Ok((recording, reader))
    }

    /// Appends the samples that are new in this snapshot, up to `until_ns` if given. Returns false
    /// if the pipe was closed, which is no error.
    pub fn append(&mut self, snapshot: &Snapshot, until_ns: Option<u64>) -> Result<bool, Failure> {
        if let Some(view) = &snapshot.view {
            let written = self.writer.append(view, until_ns);
            written.map_err(|error| self.keep_rest(&error))?;
        }
        Ok(!self.is_left.get())
    }

    /// Returns the failure of a write, after which nothing more is written. What was written before
    /// is kept, also if it would have been converted at the end.
    fn keep_rest(&mut self, error: &FormatError) -> Failure {
        let failure = refused(error);
        match self.later.take() {
            Some(later) if self.writer.bytes() > self.head_bytes => later.keep(failure),
            _ => failure,
        }
    }

    /// Writes the last samples and the end of the file, converts it if it is not a .pft, and prints
    /// a summary to standard error.
    pub fn finish(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        if let Some(view) = &snapshot.view {
            let end_ns = snapshot.report.window.end_ns;
            let written = self
                .writer
                .append_last(view, end_ns)
                .and_then(|()| self.writer.finish(view));
            written.map_err(|error| self.keep_rest(&error))?;
        }
        self.clear_line();
        let notes = snapshot.health.notes.iter();
        notes.for_each(stderr::say);
        let written = match self.later.take() {
            Some(later) => later.write()?,
            None => self.writer.bytes(),
        };
        stderr::say(format_args!(
            "{}, {} in {}, {} lost",
            counted(self.samples(), "sample"),
            bytes(written),
            self.name,
            snapshot.health.lost_run
        ));
        Ok(())
    }

    /// Returns the number of samples that are written so far.
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

    /// Prints time and number of samples over the last line of the terminal. Does nothing if the
    /// output is a pipe, or standard error is not a terminal.
    pub fn show_progress(&self, snapshot: &Snapshot) {
        if self.is_shown {
            let seconds = snapshot.run.elapsed.as_secs();
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            let lost = snapshot.health.lost_run;
            let line = self.summary();
            stderr::write_over_line(format_args!(
                "{minutes}:{seconds:02}  {line}, {lost} lost  (^C ends)"
            ));
        }
    }

    /// Prints how much is written so far, after SIGUSR2.
    pub fn say_written(&self) {
        self.clear_line();
        stderr::say(format_args!("{} so far", self.summary()));
    }

    fn clear_line(&self) {
        if self.is_shown {
            stderr::write_over_line("");
        }
    }
}

fn refused(error: &FormatError) -> Failure {
    Failure::failed(format!("cannot go on recording: {error}"))
}
